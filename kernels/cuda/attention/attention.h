// Attention and its gradients, issued to a stream; the meaning and the layout of operands are those
// of kernels/shared/attention_shape.h. T is float, Bfloat16 or Float16; sums and softmax are those
// of f32, results are rounded once. The full matrix of scores is never stored (Dao et al.,
// arXiv:2205.14135 and 2307.08691). No sum depends on the order of threads or blocks.
//
// There are three kinds of kernels. Those of attention_general.cu.cc take everything. Those of
// attention_tensor*.cu.cc take 16-bit elements whose rows are whole vectors, up to a dim of 128,
// and multiply on tensor cores: probabilities and their gradients are rounded to T for that. Those
// of attention_group*.cu.cc take the same, and multiply by warpgroups, which sm_90a has.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"
#include "kernels/shared/attention_shape.h"

namespace mgc::cuda {

// What does not depend on operands; handed to device code by value.
struct AttentionUse {
  AttentionShape shape;
  AttentionDropout dropout;    // without the step's samples
  DropoutRule rule = {};       // what it keeps
  uint64_t sample_stride = 0;  // logical indices from a sample to the next
  AttentionPositions positions;
  SamplePlace sample;

  constexpr bool drops() const { return dropout.p > 0; }
};

template <class T>
struct AttentionOperands {
  const T* q;
  const T* k;
  const T* v;
};

// What the gradients need beside the operands.
template <class T>
struct AttentionResults {
  const T* d_o;
  const T* o;
  const float* lse;
};

template <class T>
struct AttentionGradients {
  T* d_q;
  T* d_k;
  T* d_v;
};

// Room for what the gradients of queries are added up in by warpgroups: `parts` times as many
// floats as QuerySumsOfHead (attention_group_shape.h) says of each head. Without parts there is
// none, and two passes over the pairs are taken.
struct AttentionWork {
  float* query_sums = nullptr;
  int parts = 0;
};

template <class T>
int Attention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
              float* lse);
template <class T>
int AttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                  const AttentionResults<T>& results, const AttentionGradients<T>& out,
                  const AttentionWork& work);

// The kernels that take everything.
template <class T>
int GeneralAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                     float* lse);
template <class T>
int GeneralAttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                         const AttentionResults<T>& results, const AttentionGradients<T>& out);

// Those of tensor cores, for T Bfloat16 or Float16, where TensorCoresTake the use.
template <class T>
int TensorAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                    float* lse);
// The deltas of all rows, which stay in d_q for the others.
template <class T>
int TensorDeltas(Stream stream, const AttentionUse& use, const AttentionResults<T>& results,
                 T* d_q);
// d_k and d_v; then d_q.
template <class T>
int TensorKeyGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                  const AttentionResults<T>& results, const AttentionGradients<T>& out);
template <class T>
int TensorQueryGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                    const AttentionResults<T>& results, T* d_q);

// Those of warpgroups, for what tensor cores take, where the current GPU and what the program was
// built for have them (HasGroupKernels) and GroupsTake the shape. Gradients: behind TensorDeltas,
// with room.
bool HasGroupKernels();
template <class T>
int GroupAttention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
                   float* lse);
template <class T>
int GroupGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
              const AttentionResults<T>& results, const AttentionGradients<T>& out,
              const AttentionWork& work);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_H_
