#include "tests/random_models/random_blocks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

int LastDim(const ModelMaker& m, ValueId x) { return m.NumDims(x) - 1; }

// up, activation, down; gated now and then, with biases now and then.
ValueId Mlp(ModelMaker& m, ValueId x) {
  const std::string hidden = m.dice().OneIn(3) ? "wide" : "mlp";
  ValueId h = m.Product(x, m.Weight({"embed", hidden}));
  if (m.dice().OneIn(3)) h = m.Op("add", {h, m.Param(m.TypeOf({hidden}), "ones")});
  h = m.Activate(h);
  if (m.dice().OneIn(3)) h = m.Op("mul", {h, m.Product(x, m.Weight({"embed", hidden}))});
  const ValueId y = m.Product(h, m.Weight({hidden, "embed"}));
  return m.dice().OneIn(4) ? m.Op("add", {y, m.Param(m.TypeOf({"embed"}), "ones")}) : y;
}

// Contracts what is not the last dim: tokens are mixed.
ValueId Mixer(ModelMaker& m, ValueId x) {
  const ValueId turned = m.Transpose(x, {0, 2, 1});
  const ValueId h = m.Activate(m.Product(turned, m.Weight({"seq", "mixed"})));
  return m.Transpose(m.Product(h, m.Weight({"mixed", "seq"})), {0, 2, 1});
}

// Attention from small ops, of all tokens.
ValueId SmallOpAttention(ModelMaker& m, ValueId x) {
  const std::vector<std::string> in = {"embed", "heads", "head_dim"};
  const ValueId q = m.Product(x, m.Weight(in));
  const ValueId k = m.Product(x, m.Weight(in));
  const ValueId v = m.Product(x, m.Weight(in));
  ValueId scores = m.Op("matmul", {q, k}, {{"spec", "b s h d, b t h d -> b h s t"}});
  scores = m.Op("scale", {scores}, {{"value", 0.5}});
  const ValueId shares = m.Op("softmax", {scores});
  const ValueId o = m.Op("matmul", {shares, v}, {{"spec", "b h s t, b t h d -> b s h d"}});
  return m.Product(o, m.Weight({"heads", "head_dim", "embed"}), 2);
}

// All samples' tokens as rows, and back.
ValueId MergedRows(ModelMaker& m, ValueId x) {
  const TensorType before = m.Type(x);
  TensorType rows;
  rows.dims = {{before.dims[0].size * before.dims[1].size, m.NameOf("rows")}, before.dims[2]};
  const ValueId r = m.Reshape(x, rows);
  const ValueId h = m.Activate(m.Product(r, m.Weight({"embed", "mlp"})));
  return m.Reshape(m.Product(h, m.Weight({"mlp", "embed"})), before);
}

// The last dim as heads, each of which is normed, and back.
ValueId SplitHeads(ModelMaker& m, ValueId x) {
  const ValueId h = m.Product(x, m.Weight({"embed", "heads", "head_dim"}));
  TensorType flat = m.Type(x);
  flat.dims.back() = {m.Size("heads") * m.Size("head_dim"), m.NameOf("flat_heads")};
  const ValueId y = m.Reshape(Norm(m, h), flat);
  TensorType weight;
  weight.dims = {flat.dims.back(), m.Type(x).dims.back()};
  return m.Product(y, m.Param(weight));
}

// Every token beside the one before it, the first beside the last.
ValueId Shift(ModelMaker& m, ValueId x) {
  const int64_t tokens = m.Type(x).dims[1].size;
  const ValueId head = m.Slice(x, 1, 0, tokens - 1);
  const ValueId last = m.Slice(x, 1, tokens - 1, tokens);
  return m.Op("mul", {m.Concat({last, head}, 1), m.Param(m.TypeOf({"embed"}), "ones")});
}

// A branch beside the stream, joined along the last dim.
ValueId ConcatBranches(ModelMaker& m, ValueId x) {
  const ValueId side = m.Product(x, m.Weight({"embed", "mlp"}));
  const ValueId both = m.Concat({x, m.Activate(side)}, LastDim(m, x));
  TensorType weight;
  weight.dims = {{m.Size("embed") + m.Size("mlp"), ""}, m.Type(x).dims.back()};
  return m.Product(both, m.Param(weight));
}

// The stream in two halves, one of which gates the other.
ValueId SplitBranches(ModelMaker& m, ValueId x) {
  const ValueId h = m.Product(x, m.Weight({"embed", "mlp"}));
  const int64_t size = m.Size("mlp") / 2;
  const ValueId a = m.Slice(h, LastDim(m, h), 0, size);
  const ValueId b = m.Slice(h, LastDim(m, h), size, 2 * size);
  const ValueId gated = m.Op("mul", {m.Activate(a), b});
  TensorType weight;
  weight.dims = {m.Type(gated).dims.back(), m.Type(x).dims.back()};
  return m.Product(gated, m.Param(weight));
}

// Through few channels, as in the middle of a U-Net.
ValueId Narrow(ModelMaker& m, ValueId x) {
  const ValueId h = m.Activate(m.Product(x, m.Weight({"embed", "narrow"})));
  return m.Product(h, m.Weight({"narrow", "embed"}));
}

// All experts, weighted by a softmax.
ValueId DenseExperts(ModelMaker& m, ValueId x) {
  const ValueId shares = m.Op("softmax", {m.Product(x, m.Weight({"embed", "experts"}))});
  const bool tokens = m.NumDims(x) == 3;
  const std::string lead = tokens ? "b s" : "b";
  const ValueId up = m.Weight({"experts", "embed", "mlp"});
  const ValueId down = m.Weight({"experts", "mlp", "embed"});
  const auto spec = [&](const char* x, const char* w, const char* y) {
    return Attrs{{"spec", absl::StrCat(lead, x, ", ", w, " -> ", lead, y)}};
  };
  const ValueId h = m.Activate(m.Op("matmul", {x, up}, spec(" e", "n e f", " n f")));
  const ValueId y = m.Op("matmul", {h, down}, spec(" n f", "n f e", " n e"));
  return m.Op("matmul", {y, shares}, spec(" n e", lead == "b" ? "b n" : "b s n", " e"));
}

// What all tokens of a sample have in common, given back to each.
ValueId Pooled(ModelMaker& m, ValueId x) {
  const ValueId pool = m.Activate(m.Product(m.ReduceSum(x, {1}), m.Weight({"embed", "embed"})));
  const Dim& tokens = m.Type(x).dims[1];
  const ValueId each = m.Op("broadcast", {pool},
                            {{"dims", std::vector<int64_t>{1}},
                             {"sizes", std::vector<int64_t>{tokens.size}},
                             {"names", tokens.name.empty() ? "_" : tokens.name}});
  return m.Op("mul", {x, each});
}

// What a data input of every token lets through.
ValueId Masked(ModelMaker& m, ValueId x) {
  const ValueId mask = m.Data("mask", m.Type(x));
  return m.Op("mul", {m.Product(x, m.Weight({"embed", "embed"})), mask});
}

ValueId Dropped(ModelMaker& m, ValueId x) {
  const ValueId h = m.Activate(m.Product(x, m.Weight({"embed", "mlp"})));
  const ValueId d = m.Op("dropout", {h}, {{"p", 0.25}, {"key", m.RandomKey()}});
  return m.Product(d, m.Weight({"mlp", "embed"}));
}

ValueId Elements(ModelMaker& m, ValueId x) {
  const ValueId scaled = m.Op("mul", {x, m.Param(m.TypeOf({"embed"}), "ones")});
  return m.Op("sub", {m.Activate(scaled), m.Op("scale", {x}, {{"value", 0.5}})});
}

ValueId Pinned(ModelMaker& m, ValueId x) {
  const ValueId h = m.Pin(m.Product(x, m.Weight({"embed", "mlp"})));
  const ValueId y = m.Product(m.Activate(h), m.Weight({"mlp", "embed"}));
  return m.dice().Flip() ? m.Pin(y) : y;
}

constexpr RandomBlock kBlocks[] = {{"mlp", false, Mlp},
                                   {"mlp", false, Mlp},
                                   {"mixer", true, Mixer},
                                   {"attention", true, SmallOpAttention},
                                   {"fused_attention", true, FusedAttention},
                                   {"rows", true, MergedRows},
                                   {"heads", false, SplitHeads},
                                   {"shift", true, Shift},
                                   {"concat", false, ConcatBranches},
                                   {"split", false, SplitBranches},
                                   {"narrow", false, Narrow},
                                   {"experts", false, DenseExperts},
                                   {"pooled", true, Pooled},
                                   {"masked", false, Masked},
                                   {"dropped", false, Dropped},
                                   {"elements", false, Elements},
                                   {"pinned", false, Pinned}};

}  // namespace

absl::Span<const RandomBlock> RandomBlocks() { return kBlocks; }

ValueId Norm(ModelMaker& m, ValueId x) {
  TensorType weight;
  weight.dims = {m.Type(x).dims.back()};
  const ValueId w = m.Param(weight, "ones");
  if (m.dice().Flip()) return m.Op("rms_norm", {x, w}, {{"eps", 0.1}});
  return m.Op("layer_norm", {x, w, m.Param(weight, "ones")}, {{"eps", 0.1}});
}

ValueId FusedAttention(ModelMaker& m, ValueId x) {
  const bool shared = m.dice().OneIn(3) && m.Size("heads") % m.Size("kv_heads") == 0;
  const std::string kv = shared ? "kv_heads" : "heads";
  const Attrs tokens = {{"size", m.Size("seq")}, {"name", m.NameOf("seq")}};
  const ValueId positions = m.Op("iota", {}, tokens);
  ValueId q = m.Product(x, m.Weight({"embed", "heads", "head_dim"}));
  ValueId k = m.Product(x, m.Weight({"embed", kv, "head_dim"}));
  const ValueId v = m.Product(x, m.Weight({"embed", kv, "head_dim"}));
  if (m.dice().Flip() && m.Size("head_dim") % 2 == 0) {
    q = m.Op("rope", {q, positions}, {{"theta", 100.0}});
    k = m.Op("rope", {k, positions}, {{"theta", 100.0}});
  }
  const double dropped = m.dice().OneIn(4) ? 0.25 : 0.0;
  const ValueId o = m.Op("attention", {q, k, v, positions, positions},
                         {{"scale", 0.5}, {"p", dropped}, {"key", m.RandomKey()}});
  return m.Product(o, m.Weight({"heads", "head_dim", "embed"}), 2);
}

}  // namespace mgc
