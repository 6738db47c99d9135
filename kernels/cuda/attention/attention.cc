#include "kernels/cuda/attention/attention.h"

#include <cstdint>
#include <type_traits>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

template <class T>
bool AreAligned(const AttentionOperands<T>& in) {
  return IsAligned(in.q, kVectorBytes) && IsAligned(in.k, kVectorBytes) &&
         IsAligned(in.v, kVectorBytes);
}

}  // namespace

template <class T>
int Attention(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in, T* o,
              float* lse) {
  if constexpr (!std::is_same_v<T, float>) {
    if (TensorCoresTake(use.shape) && AreAligned(in) && IsAligned(o, kVectorBytes)) {
      return TensorAttention(stream, use, in, o, lse);
    }
  }
  return GeneralAttention(stream, use, in, o, lse);
}

template <class T>
int AttentionGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                  const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  return GeneralAttentionGrad(stream, use, in, results, out);
}

#define MGC_INSTANTIATE(T)                                                                         \
  template int Attention<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, T*, float*); \
  template int AttentionGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&,          \
                                const AttentionResults<T>&, const AttentionGradients<T>&)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
