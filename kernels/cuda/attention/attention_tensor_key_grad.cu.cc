// Gradients of attention with respect to keys and values, on tensor cores.
#include "kernels/cuda/attention/attention_tensor_key_grad.h"

namespace mgc::cuda {
namespace {

template <class T, int kDim, bool kPlain>
__global__ void __launch_bounds__(KeyGradTiles(kDim, kPlain).threads())
    TensorKeyGradKernel(AttentionUse use, AttentionOperands<T> in, AttentionResults<T> results,
                        T* d_q, T* d_k, T* d_v) {
  using Block = KeyGradBlock<T, kDim, kPlain>;
  constexpr int kBands = Block::kBands, kColumns = Block::kColumns;
  Block block = {
      KeyBlockAt<typename Block::Config>(
          use, in, results, d_q, HeadPlaceOf(use.shape.keys, use.shape.kv_heads, Block::kRows)),
      {},
      {}};
  block.Clear();
  block.block.ForEachTile([&](const QueryTile& tile, int stage) {
    Band<kColumns> scores[kBands], d_p[kBands];
    if (block.ScoreTile(tile, stage, scores, d_p)) block.AddTile(stage, scores, d_p);
  });
  block.End(d_k, d_v);
}

template <class T, int kDim, bool kPlain>
int Issue(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
          const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  const AttentionShape& s = use.shape;
  return Launch(
      TensorKeyGradKernel<T, kDim, kPlain>,
      TensorShape(KeyGradTiles(kDim, kPlain), kDim, s.keys, s.batch * s.kv_heads, s.queries),
      stream, use, in, results, out.d_q, out.d_k, out.d_v);
}

}  // namespace

template <class T>
int TensorKeyGrad(Stream stream, const AttentionUse& use, const AttentionOperands<T>& in,
                  const AttentionResults<T>& results, const AttentionGradients<T>& out) {
  return ForKind(use.shape, use.dropout, [&](auto dim, auto plain) {
    return Issue<T, decltype(dim)::value, decltype(plain)::value>(stream, use, in, results, out);
  });
}

#define MGC_INSTANTIATE(T)                                                                \
  template int TensorKeyGrad<T>(Stream, const AttentionUse&, const AttentionOperands<T>&, \
                                const AttentionResults<T>&, const AttentionGradients<T>&)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
