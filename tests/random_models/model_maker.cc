#include "tests/random_models/model_maker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

constexpr int64_t kLargest = 16;

// `a.first a.first+1 ...`
std::vector<std::string> Letters(const char* prefix, int from, int to) {
  std::vector<std::string> letters;
  for (int i = from; i < to; ++i) letters.push_back(absl::StrCat(prefix, i));
  return letters;
}

}  // namespace

ModelMaker::ModelMaker(const RandomModelOptions& options, DimNaming naming, Dice* dice)
    : options_(options), naming_(naming), dice_(*dice), builder_("random") {
  sizes_["batch"] = options.samples;
}

int64_t ModelMaker::Size(const std::string& counts) {
  const auto [it, fresh] = sizes_.try_emplace(counts, 0);
  if (!fresh) return it->second;
  if (dice_.OneIn(100)) return it->second = 3 + static_cast<int64_t>(dice_.Below(8));
  const int64_t most = std::max<int64_t>(kLargest / options_.unit, 1);
  const int64_t least = std::max<int64_t>(4 / options_.unit, 1);
  const auto more = static_cast<size_t>(std::min<int64_t>(most - least + 1, 4));
  return it->second = options_.unit * (least + static_cast<int64_t>(dice_.Below(more)));
}

std::string ModelMaker::NameOf(const std::string& counts) const {
  if (naming_ == DimNaming::kNone) return "";
  if (naming_ == DimNaming::kMegatron || counts == "batch") return counts;
  return absl::StrCat("my_", counts);
}

TensorType ModelMaker::TypeOf(const std::vector<std::string>& counts, DType dtype) {
  TensorType type;
  type.dtype = dtype;
  for (const std::string& name : counts) type.dims.push_back({Size(name), NameOf(name)});
  return type;
}

std::string ModelMaker::Path(absl::string_view name) const {
  if (layer_ == kNoLayer || layer_ == graph().num_layers()) return std::string(name);
  if (layer_ == kEmbeddingLayer) return absl::StrCat("embedding.", name);
  return absl::StrCat("layers.", layer_, ".", name);
}

ValueId ModelMaker::Data(absl::string_view name, const TensorType& type) {
  const ValueId known = graph().FindValue(name);
  return known != kNone ? known : builder_.AddInput(name, type, InputKind::kData);
}

ValueId ModelMaker::Param(const TensorType& type, absl::string_view init) {
  Attrs attrs = {{"init", std::string(init)}, {"decay", int64_t{0}}};
  if (init == "normal") attrs.Set("std", 0.3);
  const std::string name = absl::StrCat("w", params_[layer_]++);
  return builder_.AddInput(Path(name), type, InputKind::kParam, std::move(attrs));
}

ValueId ModelMaker::Weight(const std::vector<std::string>& counts) {
  const TensorType type = TypeOf(counts);
  const auto spare =
      std::find_if(spare_.begin(), spare_.end(), [&](ValueId id) { return Type(id) == type; });
  if (spare != spare_.end()) {
    const ValueId packed = *spare;
    spare_.erase(spare);
    return packed;
  }
  std::vector<ValueId> known;
  for (ValueId id : weights_) {
    if (Type(id) == type) known.push_back(id);
  }
  if (!known.empty() && dice_.OneIn(options_.shared_one_in)) return dice_.Of(known);
  return Disguised(type);
}

ValueId ModelMaker::Disguised(const TensorType& type) {
  const int64_t rows = type.dims[0].size;
  switch (dice_.Below(16)) {
    case 0: {  // the other way round
      TensorType stored = type;
      std::reverse(stored.dims.begin(), stored.dims.end());
      std::vector<int64_t> perm;
      for (int d = type.ndim(); d-- > 0;) perm.push_back(d);
      return Transpose(Param(stored), perm);
    }
    case 1:
      return Packed(type);
    case 2: {  // two parts
      const int64_t unit = rows >= 2 * options_.unit ? options_.unit : 1;
      if (rows < 2) break;
      TensorType first = type;
      TensorType second = type;
      first.dims[0].size = rows / unit / 2 * unit;
      second.dims[0].size = rows - first.dims[0].size;
      return Concat({Param(first), Param(second)}, 0);
    }
    case 3: {  // flat; of two dims, since Megatron's strategy gathers no heads
      if (type.ndim() > 2) break;
      TensorType flat;
      flat.dims = {{type.NumElements(), ""}};
      return Reshape(Param(flat), type);
    }
    case 4:
      return Op("scale", {Param(type)}, {{"value", 0.75}});
    default:
      break;
  }
  const ValueId plain = Param(type);
  weights_.push_back(plain);
  return plain;
}

// Two weights in one parameter, along a dim in front or along the last.
ValueId ModelMaker::Packed(const TensorType& type) {
  TensorType both = type;
  const bool in_front = dice_.Flip();
  if (in_front) {
    both.dims.insert(both.dims.begin(), Dim{2, ""});
  } else {
    both.dims.back() = {2 * type.dims.back().size, ""};
  }
  const ValueId param = Param(both);
  const int dim = in_front ? 0 : type.ndim() - 1;
  const int64_t size = both.dims[static_cast<size_t>(dim)].size / 2;
  const auto half = [&](int64_t at) {
    const ValueId part = Slice(param, dim, at * size, (at + 1) * size);
    return in_front ? Reshape(part, type) : part;
  };
  const ValueId first = half(0);
  const ValueId second = half(1);
  if (dice_.Flip()) {
    spare_.push_back(second);
    return first;
  }
  return Op("add", {first, second});
}

ValueId ModelMaker::Op(absl::string_view op, std::vector<ValueId> operands, Attrs attrs) {
  Node like;
  like.layer = layer_;
  const OpDef* found = FindOp(op);
  MGC_CHECK(found != nullptr) << "no op " << op;
  const std::vector<std::string> names(std::max<size_t>(found->results.size(), 1), Path(op));
  absl::StatusOr<std::vector<ValueId>> made =
      builder_.Append(op, std::move(operands), std::move(attrs), like,
                      absl::MakeConstSpan(names).first(found->results.size()));
  MGC_CHECK(made.ok()) << made.status().ToString();
  return (*made)[0];
}

ValueId ModelMaker::Product(ValueId x, ValueId w, int dims) {
  const int kept = NumDims(x) - dims;
  const std::vector<std::string> front = Letters("a", 0, kept);
  const std::vector<std::string> contracted = Letters("k", 0, dims);
  const std::vector<std::string> made = Letters("n", 0, NumDims(w) - dims);
  const auto join = [](std::vector<std::string> first, const std::vector<std::string>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return absl::StrJoin(first, " ");
  };
  return Op("matmul", {x, w},
            {{"spec", absl::StrCat(join(front, contracted), ", ", join(contracted, made), " -> ",
                                   join(front, made))}});
}

ValueId ModelMaker::Slice(ValueId x, int dim, int64_t begin, int64_t end) {
  return Op("slice", {x}, {{"dim", int64_t{dim}}, {"begin", begin}, {"end", end}});
}

ValueId ModelMaker::Concat(std::vector<ValueId> parts, int dim) {
  return Op("concat", std::move(parts), {{"dim", int64_t{dim}}});
}

ValueId ModelMaker::Transpose(ValueId x, std::vector<int64_t> perm) {
  return Op("transpose", {x}, {{"perm", std::move(perm)}});
}

ValueId ModelMaker::Reshape(ValueId x, const TensorType& type) {
  std::vector<std::string> names;
  for (const Dim& dim : type.dims) names.push_back(dim.name.empty() ? "_" : dim.name);
  return Op("reshape", {x}, {{"sizes", SizesOf(type)}, {"names", absl::StrJoin(names, " ")}});
}

ValueId ModelMaker::ReduceSum(ValueId x, std::vector<int64_t> dims) {
  return Op("reduce_sum", {x}, {{"dims", std::move(dims)}});
}

ValueId ModelMaker::Activate(ValueId x) {
  const auto op = dice_.Of<std::string>({"gelu", "silu", "gelu_erf", "soft_cap"});
  return op == "soft_cap" ? Op(op, {x}, {{"cap", 2.0}}) : Op(op, {x});
}

ValueId ModelMaker::Pin(ValueId x) {
  std::vector<std::string> dims;
  std::vector<PinAxis> axes = options_.pins;
  for (const Dim& dim : Type(x).dims) {
    std::string cut = "-";
    if (!axes.empty() && dim.size % axes.front().second == 0 && dice_.OneIn(dims.empty() ? 1 : 2)) {
      cut = axes.front().first;
      axes.erase(axes.begin());
    }
    dims.push_back(std::move(cut));
  }
  return Op("reshard", {x}, {{"pin", int64_t{1}}, {"sharding", absl::StrJoin(dims, ",")}});
}

std::string ModelMaker::RandomKey() { return Path(absl::StrCat("key", keys_++)); }

void ModelMaker::Loss(ValueId x, double weight) {
  builder_.AddOutput({x, OutputKind::kLoss, absl::StrCat("loss.", losses_++), kNone, weight});
}

void ModelMaker::Report(absl::string_view name, ValueId x) {
  builder_.AddOutput({x, OutputKind::kReport, std::string(name), kNone, 1.0});
}

}  // namespace mgc
