#include "kernels/cuda/attention/attention.h"

#include <cstdint>
#include <type_traits>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/cuda/attention/attention_group_shape.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

// To whole vectors.
template <class... Pointers>
bool AllAligned(Pointers... x) {
  return (IsAligned(x, 16) && ...);
}
template <class T>
bool AreAligned(const AttentionOperands<T>& in) {
  return AllAligned(in.q, in.k, in.v);
}

}  // namespace

template <class T>
int Attention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
              float* lse) {
  if constexpr (!std::is_same_v<T, float>) {
    if (TensorCoresTake(use.shape) && AreAligned(in) && AllAligned(o)) {
      return GroupsTake(use.shape) && HasGroupKernels() ? GroupAttention(stream, use, in, o, lse)
                                                        : TensorAttention(stream, use, in, o, lse);
    }
  }
  return GeneralAttention(stream, use, in, o, lse);
}

template <class T>
int AttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                  const AttentionResults<T>& results, const AttentionGradients<T>& out,
                  const AttentionWork& work) {
  if constexpr (!std::is_same_v<T, float>) {
    const bool aligned = AreAligned(in) && AllAligned(results.d_o, results.o) &&
                         AllAligned(out.d_q, out.d_k, out.d_v);
    if (TensorCoresTake(use.shape) && aligned) {
      int error = TensorDeltas(stream, use, results, out.d_q);
      if (error != 0) return error;
      if (work.parts > 0 && GroupsTake(use.shape) && HasGroupKernels()) {
        return GroupGrad(stream, use, in, results, out, work);
      }
      error = TensorKeyGrad(stream, use, in, results, out);
      return error != 0 ? error : TensorQueryGrad(stream, use, in, results, out.d_q);
    }
  }
  return GeneralAttentionGrad(stream, use, in, results, out);
}

#define MGC_INSTANTIATE(T)                                                                         \
  template int Attention<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, T*, float*); \
  template int AttentionGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&,          \
                                const AttentionResults<T>&, const AttentionGradients<T>&,          \
                                const AttentionWork&)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
