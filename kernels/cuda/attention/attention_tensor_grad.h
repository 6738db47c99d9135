// What the gradients of attention on tensor cores share. Device code only.
//
// First delta = d_o · o of every row. Then those of keys and values by blocks of keys, and those of
// queries by blocks of queries, which both compute the scores; so that every sum is one warp's and
// has one order. Warpgroups, where there is room for sums of the queries' gradients, take one pass
// by blocks of keys (attention_group_grad.cu.cc). Deltas need no room: each stands in the first
// bytes of its row of d_q, until what writes the row.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_GRAD_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_GRAD_H_

#include "kernels/cuda/attention/attention_tensor.h"

namespace mgc::cuda {

template <class T>
__device__ float& DeltaOf(T* d_q_row) {
  return *reinterpret_cast<float*>(d_q_row);
}

// What a row's probabilities are divided by, as a power of two. Infinite where nothing is visible.
__device__ __forceinline__ float PowerOf(float lse) {
  return lse == -INFINITY ? INFINITY : lse * kLog2E;
}

// What of a score's derivative the scale is not: 1 without a cap.
__device__ __forceinline__ float BendOf(float cap, float score) {
  const float bound = score / cap;
  return bound < -2.0f ? 0.0f : 1.0f - bound * bound;
}

// Scores become probabilities. `power_of` gives the row's of the element that is register i of
// block n.
template <int kColumns, class PowerOfElement>
__device__ __forceinline__ void Normalize(float exponent, const PowerOfElement& power_of,
                                          Band<kColumns>* scores) {
#pragma unroll
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores->at[n][i] = Exp2(fmaf(scores->at[n][i], exponent, -power_of(n, i)));
    }
  }
}

// d_o · v becomes the gradients of scores that have neither cap nor dropout, from probabilities.
template <int kColumns, class DeltaOfElement>
__device__ __forceinline__ void BendPlain(const Band<kColumns>& probabilities,
                                          const DeltaOfElement& delta_of, Band<kColumns>* d_p) {
#pragma unroll
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      d_p->at[n][i] = probabilities.at[n][i] * (d_p->at[n][i] - delta_of(n, i));
    }
  }
}

// From scores and d_o · v: probabilities after dropout, and the gradients of scores. `power_of` and
// `delta_of` as above; `kept_of` gives what dropout multiplies the lane's elements of block n by.
template <bool kPlain, int kColumns, class PowerOfElement, class DeltaOfElement,
          class KeptOfElements>
__device__ __forceinline__ void GradientsOfBand(const AttentionUse& use,
                                                const PowerOfElement& power_of,
                                                const DeltaOfElement& delta_of,
                                                const KeptOfElements& kept_of,
                                                Band<kColumns>* scores, Band<kColumns>* d_p) {
  const float exponent = ExponentScale(use.shape);
  if constexpr (kPlain) {
    Normalize(exponent, power_of, scores);
    BendPlain(*scores, delta_of, d_p);
    return;
  }
  const float cap = use.shape.cap;
#pragma unroll
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
    float kept[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    if (use.drops()) kept_of(n, kept);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& score = scores->at[n][i];
      float& gradient = d_p->at[n][i];
      const float p = Exp2(fmaf(score, exponent, -power_of(n, i)));
      const float bend = cap == 0.0f ? 1.0f : BendOf(cap, score);
      gradient = p * fmaf(gradient, kept[i], -delta_of(n, i)) * bend;
      score = p * kept[i];
    }
  }
}

// Tiles of kRows rows of the other side, in pairs: one in use, the others on their way.
template <class T, class Shared, int kRows, int kStages = 2>
struct StagedPairs {
  T* at;

  static constexpr int kTile = kRows * Shared::kChunks * Shared::kChunk;
  static constexpr int kElements = 2 * kStages * kTile;
  __device__ __forceinline__ Shared First(int stage) const { return {at + stage * 2 * kTile}; }
  __device__ __forceinline__ Shared Second(int stage) const { return {First(stage).at + kTile}; }
};

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_GRAD_H_
