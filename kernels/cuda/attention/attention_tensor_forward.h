// What the forward kernels of attention on tensor cores share. Device code only.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_FORWARD_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_FORWARD_H_

#include "kernels/cuda/attention/attention_tensor.h"

namespace mgc::cuda {

// The running softmax of a band's two rows of a lane. `most` is of scores, `sum` of the lane's own
// columns: the four lanes of a row add theirs up at the end.
struct BandSoftmax {
  float most[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};

  // Turns scores into 2^(exponent (score - new maximum)); `shrink` is what was summed before must
  // be multiplied by. Where nothing is visible so far, all become zero; NaN stays. Returns whether
  // a maximum has grown.
  template <int kColumns>
  __device__ __forceinline__ bool Step(float exponent, Band<kColumns>* scores, float (&shrink)[2]) {
    bool grew = false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float best = most[r];
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        best = fmaxf(best, fmaxf(scores->at[n][2 * r], scores->at[n][2 * r + 1]));
      }
      best = fmaxf(best, __shfl_xor_sync(kWholeWarp, best, 1));
      best = fmaxf(best, __shfl_xor_sync(kWholeWarp, best, 2));
      const float from = best == -INFINITY ? 0.0f : best * exponent;
      shrink[r] = Exp2(fmaf(most[r], exponent, -from));
      grew = grew || best != most[r];
      most[r] = best;
      float added = 0.0f;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& x = scores->at[n][2 * r + c];
          x = Exp2(fmaf(x, exponent, -from));
          added += x;
        }
      }
      sum[r] = fmaf(sum[r], shrink[r], added);
    }
    return grew;
  }

  __device__ __forceinline__ float WholeSum(int r) const {
    const float pair = sum[r] + __shfl_xor_sync(kWholeWarp, sum[r], 1);
    return pair + __shfl_xor_sync(kWholeWarp, pair, 2);
  }
};

// Probabilities after dropout.
template <int kColumns>
__device__ __forceinline__ void DropBand(const AttentionDrops& drops, int query, int key,
                                         Band<kColumns>* band) {
#pragma unroll
  for (int n = 0; n < Band<kColumns>::kBlocks; ++n) {
    float kept[4];
    KeptOfBlock<Side::kQueries>(drops, query, key + 8 * n, kept);
#pragma unroll
    for (int i = 0; i < 4; ++i) band->at[n][i] *= kept[i];
  }
}

// o and lse of one band, whose scores count `unit` each, by way of the warp's own rows of `staged`.
template <class Shared, class T, int kDim>
__device__ __forceinline__ void PutBand(const Shared& staged, int row, const BandSoftmax& softmax,
                                        float unit, int query, int dim, const Rows<T>& o,
                                        float* lse, Band<kDim>* sums) {
  float factors[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = softmax.WholeSum(r);
    const bool any = sum != 0.0f;
    factors[r] = any ? 1.0f / sum : 0.0f;
    const int i = query + BandRow() + 8 * r;
    if (BandColumn() == 0 && i < o.count) {
      lse[i] = any ? fmaf(softmax.most[r], unit, logf(sum)) : -INFINITY;
    }
  }
  Scale(factors, sums);
  PutRowsOfBand(staged, row, *sums, query, dim, o);
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_TENSOR_FORWARD_H_
