#include "frontends/layers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "frontends/adapter.h"

namespace mgc {
namespace {

using Words = std::vector<std::string>;

Words SplitWords(absl::string_view text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

// Names of an einsum's indices: a letter where a dim's name has one, each given out once.
class IndexNames {
 public:
  std::string Take(absl::string_view dim) {
    const std::pair<absl::string_view, absl::string_view> kLetters[] = {
        {"batch", "b"},    {"seq", "s"}, {"embed", "e"}, {"heads", "h"},     {"kv_heads", "h"},
        {"head_dim", "d"}, {"mlp", "f"}, {"vocab", "v"}, {kAdapterDim, "r"}, {"", "x"}};
    absl::string_view wanted = dim;
    for (const auto& [name, letter] : kLetters) {
      if (dim == name) wanted = letter;
    }
    std::string index(wanted);
    for (int i = 2; !taken_.insert(index).second; ++i) index = absl::StrCat(wanted, i);
    return index;
  }

  // The indices of several dims, between spaces.
  std::string TakeAll(const Words& dims) {
    return absl::StrJoin(dims, " ", [this](std::string* out, const std::string& dim) {
      absl::StrAppend(out, Take(dim));
    });
  }

 private:
  absl::flat_hash_set<std::string> taken_;
};

// Whether `type` ends in the named dims `in`; else the error is recorded.
bool EndsInDims(ModelBuilder& b, const TensorType& type, const Words& in, CallSite site) {
  bool fits = type.dims.size() >= in.size();
  Words wanted;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t size = b.Size(in[i], site);
    if (size == 0) return false;
    wanted.push_back(absl::StrCat(in[i], "=", size));
    if (!fits) continue;
    const Dim& dim = type.dims[type.dims.size() - in.size() + i];
    fits = dim.size == size && (dim.name.empty() || dim.name == in[i]);
  }
  if (fits) return true;
  b.Fail(absl::StrCat("the input must end in [", absl::StrJoin(wanted, ","), "], but is ",
                      type.ToString()),
         site);
  return false;
}

// The einsum that contracts the last dims `in` of `x` with a weight [in..., out...].
std::string LinearEinsum(const TensorType& x, const Words& in, const Words& out) {
  IndexNames names;
  Words kept;
  for (size_t i = 0; i + in.size() < x.dims.size(); ++i) kept.push_back(x.dims[i].name);
  const std::string rows = names.TakeAll(kept);
  const std::string contracted = names.TakeAll(in);
  const std::string made = names.TakeAll(out);
  return absl::StrCat(rows, " ", contracted, ", ", contracted, " ", made, " -> ", rows, " ", made);
}

// x + terms, those of them that are there; one sum.
Tensor AddPresent(ModelBuilder& b, Tensor x, const std::vector<Tensor>& terms, CallSite site) {
  std::vector<Tensor> present = {x};
  for (const Tensor& term : terms) {
    if (!term.empty()) present.push_back(term);
  }
  return present.size() == 1 ? x : Add(b, present, site);
}

Tensor Norm(ModelBuilder& b, absl::string_view op, absl::string_view name, Tensor x, double eps,
            CallSite site) {
  ModelBuilder::Scope scope = b.In(name);
  const TensorType* type = b.Type(x, site);
  if (type == nullptr) return b.Failed();
  if (type->ndim() == 0) return b.Fail("a norm needs a dim", site);
  const Dim& last = type->dims.back();
  const std::string dim = last.name.empty() ? absl::StrCat(last.size) : last.name;
  std::vector<Tensor> operands = {x, b.Param("", dim, OnesInit(), site)};
  if (op == "layer_norm") operands.push_back(b.Param("bias", dim, ZerosInit(), site));
  return b.Op(op, operands, {{"eps", eps}}, site);
}

absl::string_view OpOf(MlpOptions::Activation activation) {
  switch (activation) {
    case MlpOptions::Activation::kGelu:
      return "gelu";
    case MlpOptions::Activation::kGeluErf:
      return "gelu_erf";
    case MlpOptions::Activation::kSwiglu:
      return "swiglu";
    case MlpOptions::Activation::kGeglu:
      return "geglu";
  }
  return "";
}

Attrs AttentionAttrs(ModelBuilder& b, const AttentionOptions& options, CallSite site) {
  const double root =
      std::sqrt(static_cast<double>(std::max<int64_t>(1, b.Size("head_dim", site))));
  Attrs attrs = {{"scale", options.scale != 0 ? options.scale : 1 / root},
                 {"p", options.dropout},
                 {"key", b.RandomKey("dropout", site)}};
  if (options.window != 0) attrs.Set("window", options.window);
  if (options.cap != 0) attrs.Set("cap", options.cap);
  if (!options.causal) attrs.Set("causal", int64_t{0});
  return attrs;
}

// Of the keys' dim, which is the memory's, if there is one.
Tensor KeyPositions(ModelBuilder& b, Tensor positions, Tensor memory, CallSite site) {
  if (memory.empty()) return positions;
  const TensorType* type = b.Type(memory, site);
  if (type == nullptr) return b.Failed();
  if (type->ndim() == 3) return PositionsOf(b, type->dims[1].name, site);
  return b.Fail(absl::StrCat("the memory must be [batch, other, embed], not ", type->ToString()),
                site);
}

// Each query's mix of values, [batch, seq, heads, head_dim].
Tensor Mixed(ModelBuilder& b, Tensor q, Tensor k, Tensor v, Tensor positions, Tensor key_positions,
             const AttentionOptions& options, CallSite site) {
  std::vector<Tensor> operands = {q, k, v, positions, key_positions};
  if (options.segments.empty()) {
    return b.Op("attention", operands, AttentionAttrs(b, options, site), site);
  }
  operands.push_back(options.segments);
  operands.push_back(options.memory.empty() ? options.segments : options.memory_segments);
  return b.Op("segment_attention", operands, AttentionAttrs(b, options, site), site);
}

// Rope of one element a sample, [batch, 1, heads, head_dim], each at its own place.
Tensor RopeAt(ModelBuilder& b, Tensor x, const AttentionOptions& options, CallSite site) {
  const TensorType* type = b.Type(x, site);
  if (type == nullptr) return b.Failed();
  const std::vector<int64_t> sizes = SizesOf(*type);
  const std::string heads = type->dims[2].name;
  const Tensor samples = b.Op("reshape", {x},
                              {{"sizes", std::vector<int64_t>{1, sizes[0], sizes[2], sizes[3]}},
                               {"names", absl::StrCat("_ batch ", heads, " head_dim")}},
                              site);
  const Tensor turned = Rope(b, samples, options.place, *options.rope, site);
  return b.Op("reshape", {turned},
              {{"sizes", sizes}, {"names", absl::StrCat("batch seq ", heads, " head_dim")}}, site);
}

// Writes keys or values where they are kept, and returns all of those.
Tensor Kept(ModelBuilder& b, absl::string_view name, Tensor x, Tensor place, CallSite site) {
  const Tensor kept = b.State(name, "batch kept kv_heads head_dim", site);
  const Tensor written = b.Op("write_rows", {kept, x, place}, {}, site);
  b.Keep(kept, written, site);
  return written;
}

// What stands for queries, keys and values.
struct Heads {
  Tensor q, k, v;
};

// Each query's mix of values where these are kept.
Tensor MixedOfKept(ModelBuilder& b, const Heads& heads, const AttentionOptions& options,
                   CallSite site) {
  const Tensor k = Kept(b, "k_kept", heads.k, options.place, site);
  const Tensor v = Kept(b, "v_kept", heads.v, options.place, site);
  const Tensor positions = Positions(b, site);
  if (options.seen.empty()) {
    return Mixed(b, heads.q, heads.k, heads.v, positions, positions, options, site);
  }
  AttentionOptions all = options;  // `seen` says what is seen
  all.causal = false;
  all.window = 0;
  return b.Op("segment_attention",
              {heads.q, k, v, positions, PositionsOf(b, "kept", site), options.sees, options.seen},
              AttentionAttrs(b, all, site), site);
}

}  // namespace

Tensor Add(ModelBuilder& b, const std::vector<Tensor>& terms, CallSite site) {
  return b.Op("add", terms, {}, site);
}

Tensor PositionsOf(ModelBuilder& b, absl::string_view dim, CallSite site) {
  const int64_t size = b.Size(dim, site);
  if (size < 1) return b.Failed();
  return b.Op("iota", {}, {{"size", size}, {"name", std::string(dim)}}, site);
}

Tensor Positions(ModelBuilder& b, CallSite site) { return PositionsOf(b, "seq", site); }

Tensor Dropout(ModelBuilder& b, absl::string_view name, Tensor x, double p, CallSite site) {
  if (!(p >= 0 && p < 1)) return b.Fail(absl::StrCat("dropout ", p, " is not in [0, 1)"), site);
  if (p == 0) return x;
  return b.Op("dropout", {x}, {{"p", p}, {"key", b.RandomKey(name, site)}}, site);
}

Tensor Linear(ModelBuilder& b, absl::string_view name, Tensor x, absl::string_view spec,
              const LinearOptions& options, CallSite site) {
  ModelBuilder::Scope scope = b.In(name);
  const Words sides = absl::StrSplit(spec, "->");
  if (sides.size() != 2) return b.Fail(absl::StrCat("`", spec, "` is not `in -> out`"), site);
  const Words in = SplitWords(sides[0]);
  const Words out = SplitWords(sides[1]);
  const TensorType* type = b.Type(x, site);
  if (type == nullptr || !EndsInDims(b, *type, in, site)) return b.Failed();
  const std::string einsum = LinearEinsum(*type, in, out);
  const ParamInit init = options.init.value_or(NormalInit(options.std));
  const Tensor weight = b.Param("", absl::StrCat(sides[0], " ", sides[1]), init, site);
  const Tensor product = b.Op("matmul", {x, weight}, {{"spec", einsum}}, site);
  const Tensor bias = options.bias ? b.Param("bias", sides[1], ZerosInit(), site) : Tensor();
  const Tensor more = b.adapter() == nullptr ? Tensor() : b.adapter()->Term(b, x, in, out, site);
  if (options.dropout == 0) {
    // The residual stands first: it has the sum's sharding, the product is owed to it.
    if (options.residual.empty()) return AddPresent(b, product, {bias, more}, site);
    return AddPresent(b, options.residual, {product, bias, more}, site);
  }
  const Tensor dropped =
      Dropout(b, "dropout", AddPresent(b, product, {bias, more}, site), options.dropout, site);
  if (options.residual.empty()) return dropped;
  return Add(b, {options.residual, dropped}, site);
}

Tensor LayerNorm(ModelBuilder& b, absl::string_view name, Tensor x, double eps, CallSite site) {
  return Norm(b, "layer_norm", name, x, eps, site);
}

Tensor RmsNorm(ModelBuilder& b, absl::string_view name, Tensor x, double eps, CallSite site) {
  return Norm(b, "rms_norm", name, x, eps, site);
}

Tensor Embedding(ModelBuilder& b, absl::string_view name, Tensor ids, absl::string_view dims,
                 double std, Tensor* table, CallSite site) {
  ModelBuilder::Scope scope = b.In(name);
  const Tensor rows = b.Param("", dims, NormalInit(std), site);
  if (table != nullptr) *table = rows;
  return b.Op("lookup", {rows, ids}, {}, site);
}

Tensor Rope(ModelBuilder& b, Tensor x, Tensor positions, const RopeOptions& options,
            CallSite site) {
  Attrs attrs{{"theta", options.theta}, {"inverse", int64_t{0}}};
  if (options.llama3) {
    attrs.Set("factor", options.llama3->factor);
    attrs.Set("low", options.llama3->low_frequency_factor);
    attrs.Set("high", options.llama3->high_frequency_factor);
    attrs.Set("original", static_cast<double>(options.llama3->original_max_positions));
  }
  if (options.dims != 0) attrs.Set("dims", options.dims);
  return b.Op("rope", {x, positions}, std::move(attrs), site);
}

Tensor ChosenRow(ModelBuilder& b, Tensor row, Tensor x, CallSite site) {
  const TensorType* type = b.Type(x, site);
  if (type == nullptr) return b.Failed();
  if (type->ndim() < 3) {
    return b.Fail(absl::StrCat("rows are chosen in [batch, seq, ...], not in ", type->ToString()),
                  site);
  }
  IndexNames names;
  Words dims;
  for (const Dim& dim : type->dims) dims.push_back(dim.name);
  const std::string sample = names.Take(dims[0]), at = names.Take(dims[1]);
  const std::string rest = names.TakeAll(Words(dims.begin() + 2, dims.end()));
  const std::string spec =
      absl::StrCat(sample, " ", at, ", ", sample, " ", at, " ", rest, " -> ", sample, " ", rest);
  return b.Op("matmul", {row, x}, {{"spec", spec}}, site);
}

Tensor Attention(ModelBuilder& b, absl::string_view name, Tensor x, Tensor residual,
                 const AttentionOptions& options, CallSite site) {
  ModelBuilder::Scope scope = b.In(name);
  LinearOptions projection;
  projection.bias = options.qkv_bias;
  projection.std = options.std;
  Tensor q = Linear(b, "q", x, "embed -> heads head_dim", projection, site);
  const Tensor from = options.memory.empty() ? x : options.memory;
  Tensor k = Linear(b, "k", from, "embed -> kv_heads head_dim", projection, site);
  const Tensor v = Linear(b, "v", from, "embed -> kv_heads head_dim", projection, site);
  const Tensor positions = Positions(b, site);
  const Tensor key_positions = KeyPositions(b, positions, options.memory, site);
  if (options.qk_norm) {
    q = RmsNorm(b, "q_norm", q, *options.qk_norm, site);
    k = RmsNorm(b, "k_norm", k, *options.qk_norm, site);
  }
  if (options.rope && !options.seen.empty()) {
    q = RopeAt(b, q, options, site);
    k = RopeAt(b, k, options, site);
  } else if (options.rope) {
    q = Rope(b, q, positions, *options.rope, site);
    k = Rope(b, k, key_positions, *options.rope, site);
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return b.Fail(absl::StrCat("dropout ", options.dropout, " is not in [0, 1)"), site);
  }
  Tensor mixed = options.place.empty() ? Mixed(b, q, k, v, positions, key_positions, options, site)
                                       : MixedOfKept(b, {q, k, v}, options, site);
  if (!options.row.empty()) mixed = ChosenRow(b, options.row, mixed, site);
  LinearOptions out;
  out.bias = options.out_bias;
  out.std = options.out_std;
  out.dropout = options.out_dropout;
  out.residual = residual;
  return Linear(b, "out", mixed, "heads head_dim -> embed", out, site);
}

bool IsGated(MlpOptions::Activation activation) {
  return activation == MlpOptions::Activation::kSwiglu ||
         activation == MlpOptions::Activation::kGeglu;
}

Tensor Mlp(ModelBuilder& b, absl::string_view name, Tensor x, Tensor residual,
           const MlpOptions& options, CallSite site) {
  ModelBuilder::Scope scope = b.In(name);
  LinearOptions projection;
  projection.bias = options.bias;
  projection.std = options.std;
  Tensor hidden;
  const absl::string_view op = OpOf(options.activation);
  if (IsGated(options.activation)) {
    const Tensor gate = Linear(b, "gate", x, "embed -> mlp", projection, site);
    hidden = b.Op(op, {gate, Linear(b, "up", x, "embed -> mlp", projection, site)}, {}, site);
  } else {
    hidden = b.Op(op, {Linear(b, "up", x, "embed -> mlp", projection, site)}, {}, site);
  }
  LinearOptions out = projection;
  out.std = options.out_std;
  out.dropout = options.out_dropout;
  out.residual = residual;
  return Linear(b, "down", hidden, "mlp -> embed", out, site);
}

Tensor Logits(ModelBuilder& b, Tensor x, Tensor table, CallSite site) {
  const TensorType* type = b.Type(x, site);
  if (type == nullptr) return b.Failed();
  const absl::string_view spec = type->ndim() == 2 ? "b e, v e -> b v" : "b s e, v e -> b s v";
  return b.Op("matmul", {x, table}, {{"spec", std::string(spec)}}, site);
}

Tensor SoftCap(ModelBuilder& b, Tensor x, double cap, CallSite site) {
  return cap == 0 ? x : b.Op("soft_cap", {x}, {{"cap", cap}}, site);
}

}  // namespace mgc
