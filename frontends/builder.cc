#include "frontends/builder.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontends/adapter.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/types/layer_names.h"

namespace mgc {
namespace {

// Whether `text` may be part of a path: letters, digits, `_`, and single dots between them.
bool IsPath(absl::string_view text) {
  for (absl::string_view part : absl::StrSplit(text, '.')) {
    const bool legal = std::all_of(part.begin(), part.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
    });
    if (part.empty() || !legal) return false;
  }
  return true;
}

// Whether `text` is `ndim` entries with commas between, each `-` or axis names joined by `*`, and
// no axis twice.
bool IsPinText(absl::string_view text, int ndim) {
  if (ndim == 0) return text.empty();
  const std::vector<absl::string_view> entries = absl::StrSplit(text, ',');
  if (static_cast<int>(entries.size()) != ndim) return false;
  absl::flat_hash_set<absl::string_view> axes;
  for (absl::string_view entry : entries) {
    if (entry == "-") continue;
    for (absl::string_view axis : absl::StrSplit(entry, '*')) {
      if (!IsPath(axis) || !axes.insert(axis).second) return false;
    }
  }
  return true;
}

}  // namespace

ParamInit NormalInit(double std) { return {"normal", std, /*decay=*/true}; }
ParamInit ZerosInit() { return {"zeros", 0, /*decay=*/false}; }
ParamInit OnesInit() { return {"ones", 0, /*decay=*/false}; }
ParamInit Frozen(ParamInit init) {
  init.train = false;
  return init;
}

ModelBuilder::ModelBuilder(absl::string_view name, std::vector<Dim> dims, CallSite site)
    : graph_(name), dims_(std::move(dims)) {
  for (size_t i = 0; i < dims_.size(); ++i) {
    const Dim& dim = dims_[i];
    if (!IsPath(dim.name)) Fail(absl::StrCat("`", dim.name, "` is no name of a dim"), site);
    if (dim.size < 1 || dim.multiple < 1) {
      Fail(absl::StrCat("dim `", dim.name, "` has size ", dim.size, " and multiple ", dim.multiple,
                        "; both must be at least 1"),
           site);
    }
    if (FindDim(dim.name) != &dim) {
      Fail(absl::StrCat("dim `", dim.name, "` is given twice"), site);
    }
  }
}

ModelBuilder::Scope::Scope(ModelBuilder* builder, absl::string_view name)
    : builder_(builder), outer_(builder->path_.size()) {
  builder->path_ = builder->Path(name);
}

ModelBuilder::Scope::~Scope() { builder_->path_.resize(outer_); }

ModelBuilder::Scope ModelBuilder::EmbeddingLayer(CallSite site) {
  if (num_layers_ > 0 || in_head_) Fail("the embedding comes before the layers", site);
  EnterLayer(kEmbeddingLayer, site);
  return Scope(this, "embedding");
}

ModelBuilder::Scope ModelBuilder::Layer(int index, CallSite site) {
  if (index != num_layers_ || in_head_) {
    Fail(in_head_ ? absl::StrCat("layer ", index, " comes after the head")
                  : absl::StrCat("layer ", index, " where layer ", num_layers_, " is next"),
         site);
  }
  if (index >= num_layers_ && index < kMaxLayers) num_layers_ = index + 1;
  EnterLayer(index, site);
  return Scope(this, LayerScope(index));
}

ModelBuilder::Scope ModelBuilder::Head(CallSite site) {
  EnterLayer(num_layers_, site);
  in_head_ = true;
  return Scope(this, "head");
}

void ModelBuilder::EnterLayer(int layer, CallSite site) {
  if (!path_.empty()) Fail(absl::StrCat("a part of the model inside `", path_, "`"), site);
  layer_ = layer;
}

std::string ModelBuilder::Path(absl::string_view name) const {
  return absl::StrCat(path_, path_.empty() || name.empty() ? "" : ".", name);
}

const Dim* ModelBuilder::FindDim(absl::string_view name) const {
  for (const Dim& dim : dims_) {
    if (dim.name == name) return &dim;
  }
  return nullptr;
}

int64_t ModelBuilder::Size(absl::string_view dim, CallSite site) {
  if (const Dim* found = FindDim(dim); found != nullptr) return found->size;
  std::vector<absl::string_view> names;
  for (const Dim& known : dims_) names.push_back(known.name);
  Fail(absl::StrCat("the model has no dim `", dim, "`", DidYouMean(dim, names)), site);
  return 0;
}

bool ModelBuilder::ParseDims(absl::string_view text, std::vector<Dim>* dims, CallSite site) {
  for (absl::string_view token : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    Dim dim;
    if (absl::SimpleAtoi(token, &dim.size)) {
      if (dim.size >= 1) {
        dims->push_back(dim);
        continue;
      }
      Fail(absl::StrCat("a dim of size ", dim.size), site);
      return false;
    }
    if (Size(token, site) == 0) return false;
    dims->push_back(*FindDim(token));
  }
  return true;
}

bool ModelBuilder::CheckSize(const TensorType& type, CallSite site) {
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    if (dim.size < 1) return false;  // a bad named dim: reported when it was given
    if (dim.size > kMaxElements / elements) {
      Fail(absl::StrCat(type.ToString(), " has more than ", kMaxElements, " elements"), site);
      return false;
    }
    elements *= dim.size;
  }
  return true;
}

Tensor ModelBuilder::AddInput(const std::string& path, TensorType type, InputKind kind, Attrs attrs,
                              CallSite site) {
  if (!IsPath(path)) return Fail(absl::StrCat("`", path, "` is no path of a parameter"), site);
  if (graph_.graph().FindValue(path) != kNone) {
    return Fail(absl::StrCat("`", path, "` is already the name of a value"), site);
  }
  if (!CheckSize(type, site)) return Failed();
  return Tensor(this, graph_.AddInput(path, std::move(type), kind, std::move(attrs)));
}

Tensor ModelBuilder::Param(absl::string_view name, absl::string_view dims, const ParamInit& init,
                           CallSite site) {
  TensorType type{DType::kF32, {}};
  if (!ParseDims(dims, &type.dims, site)) return Failed();
  Attrs attrs{{"init", init.kind}, {"decay", int64_t{init.decay ? 1 : 0}}};
  const bool adapted = adapter_ != nullptr && !init.adapter;
  if (!init.train || keeps_params_ || adapted) attrs.Set(kTrainAttr, int64_t{0});
  if (init.adapter) attrs.Set("adapter", int64_t{1});
  if (init.kind == "normal") {
    if (!(init.std >= 0 && init.std < 1e30)) {
      return Fail(absl::StrCat("`", Path(name), "`: standard deviation ", init.std), site);
    }
    attrs.Set("std", init.std);
  } else if (init.kind != "zeros" && init.kind != "ones") {
    return Fail(absl::StrCat("`", Path(name), "`: unknown initialization `", init.kind, "`"), site);
  }
  Tensor made = AddInput(Path(name), std::move(type), InputKind::kParam, std::move(attrs), site);
  if (made.id_ != kNone) params_.push_back({made.id_, site});
  return made;
}

void ModelBuilder::AdaptWith(Adapter* adapter, CallSite site) {
  if (!params_.empty()) Fail("an adapter comes before all parameters", site);
  if (FindDim(kAdapterDim) != nullptr) Fail("the model has a dim `adapter` of its own", site);
  dims_.push_back({adapter->options().rank, kAdapterDim});
  if (adapter->options().rank < 1) {
    Fail(absl::StrCat("an adapter of rank ", adapter->options().rank, "; it is at least 1"), site);
  }
  adapter_ = adapter;
}

Tensor ModelBuilder::State(absl::string_view name, absl::string_view dims, CallSite site) {
  TensorType type{DType::kF32, {}};
  if (!ParseDims(dims, &type.dims, site)) return Failed();
  return AddInput(Path(name), std::move(type), InputKind::kState, {}, site);
}

void ModelBuilder::Keep(Tensor state, Tensor written, CallSite site) {
  if (Type(state, site) == nullptr) return;
  GraphOutput output;
  output.kind = OutputKind::kAssign;
  output.target = state.id_;
  output.name = graph_.graph().value(state.id_).name;
  AddOutput(std::move(output), written, site);
}

Tensor ModelBuilder::Data(absl::string_view name, absl::string_view dims, DType dtype,
                          CallSite site) {
  TensorType type{dtype, {}};
  if (!ParseDims(dims, &type.dims, site)) return Failed();
  const ValueId known = graph_.graph().FindValue(name);
  const GraphInput* input = known == kNone ? nullptr : graph_.graph().FindInput(known);
  if (input == nullptr || input->kind != InputKind::kData) {
    return AddInput(std::string(name), std::move(type), InputKind::kData, {}, site);
  }
  if (graph_.graph().type(known) == type) return Tensor(this, known);
  return Fail(absl::StrCat("data input `", name, "` is ", graph_.graph().type(known).ToString(),
                           ", and ", type.ToString(), " here"),
              site);
}

Tensor ModelBuilder::Tokens(CallSite site) {
  return Data(kTokensInput, "batch seq", DType::kI64, site);
}
Tensor ModelBuilder::Targets(CallSite site) {
  return Data(kTargetsInput, "batch seq", DType::kI64, site);
}
Tensor ModelBuilder::Weights(CallSite site) {
  return Data(kWeightsInput, "batch seq", DType::kF32, site);
}

Node ModelBuilder::NodeLike(CallSite site) {
  Node like;
  like.layer = layer_;
  like.loc = {graph_.AddFile(site.file), site.line, site.column};
  like.origin = path_;
  return like;
}

bool ModelBuilder::CheckOperands(absl::string_view op, const std::vector<Tensor>& operands,
                                 std::vector<ValueId>* ids, CallSite site) {
  bool made = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].builder_ != this) {
      Fail(absl::StrCat("operand ", i, " of ", op, " is ",
                        operands[i].empty() ? "empty" : "a value of another model"),
           site);
    }
    made &= operands[i].builder_ == this && operands[i].id_ != kNone;
    ids->push_back(operands[i].id_);
  }
  return made;
}

std::vector<Tensor> ModelBuilder::OpAll(absl::string_view op, const std::vector<Tensor>& operands,
                                        Attrs attrs, CallSite site) {
  const OpDef* def = FindOp(op);
  if (def == nullptr || def->collective) {
    std::vector<absl::string_view> names;
    for (const OpDef& known : AllOps()) {
      if (!known.collective) names.push_back(known.name);
    }
    Fail(absl::StrCat("no op `", op, "` in models", DidYouMean(op, names)), site);
    return {};
  }
  std::vector<Tensor> results(def->results.size(), Failed());
  std::vector<ValueId> ids;
  if (!CheckOperands(op, operands, &ids, site)) return results;
  absl::StatusOr<std::vector<ValueId>> made =
      graph_.Append(op, std::move(ids), std::move(attrs), NodeLike(site), {Path(op)});
  if (!made.ok()) {
    Fail(made.status().message(), site);
    return results;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (CheckSize(graph_.graph().type((*made)[i]), site)) results[i].id_ = (*made)[i];
  }
  return results;
}

Tensor ModelBuilder::Op(absl::string_view op, const std::vector<Tensor>& operands, Attrs attrs,
                        CallSite site) {
  std::vector<Tensor> results = OpAll(op, operands, std::move(attrs), site);
  return results.empty() ? Failed() : results[0];
}

Tensor ModelBuilder::Pin(Tensor x, absl::string_view sharding, CallSite site) {
  const TensorType* type = Type(x, site);
  if (type == nullptr) return Failed();
  if (!IsPinText(sharding, type->ndim())) {
    return Fail(absl::StrCat("`", sharding, "` is no sharding of ", type->ToString(),
                             ": give one entry per dim with commas between, each `-` or mesh axes "
                             "joined by `*`, none twice"),
                site);
  }
  return Op("reshard", {x}, {{"pin", int64_t{1}}, {"sharding", std::string(sharding)}}, site);
}

void ModelBuilder::AddOutput(GraphOutput output, Tensor x, CallSite site) {
  const TensorType* type = Type(x, site);
  if (type == nullptr) return;
  const std::string& name = output.name;
  for (const GraphOutput& other : graph_.graph().outputs()) {
    if (other.name == name) Fail(absl::StrCat("two outputs named `", name, "`"), site);
  }
  if (output.kind == OutputKind::kLoss && (type->ndim() != 0 || type->dtype == DType::kI64)) {
    Fail(absl::StrCat("loss `", name, "` must be a real scalar, not ", type->ToString()), site);
    return;
  }
  output.value = x.id_;
  graph_.AddOutput(std::move(output));
}

void ModelBuilder::Loss(absl::string_view name, Tensor x, double weight, CallSite site) {
  GraphOutput output;
  output.kind = OutputKind::kLoss;
  output.name = std::string(name);
  output.weight = weight;
  AddOutput(std::move(output), x, site);
}

void ModelBuilder::Report(absl::string_view name, Tensor x, CallSite site) {
  GraphOutput output;
  output.kind = OutputKind::kReport;
  output.name = std::string(name);
  AddOutput(std::move(output), x, site);
}

const TensorType* ModelBuilder::Type(Tensor x, CallSite site) {
  if (x.builder_ != this) {
    Fail(x.empty() ? "an empty value" : "a value of another model", site);
    return nullptr;
  }
  return x.id_ == kNone ? nullptr : &graph_.graph().type(x.id_);
}

std::string ModelBuilder::RandomKey(absl::string_view name, CallSite site) {
  std::string key = Path(name);
  if (!random_keys_.insert(key).second) {
    Fail(absl::StrCat("`", key, "` already names a random stream; give each its own name"), site);
  }
  return key;
}

Tensor ModelBuilder::Fail(absl::string_view message, CallSite site) {
  std::string place = absl::StrCat(site.file, ":", site.line);
  if (site.column > 0) absl::StrAppend(&place, ":", site.column);
  if (!path_.empty()) absl::StrAppend(&place, ": ", path_);
  errors_.Add({/*label=*/"", std::string(message), /*hint=*/"", std::move(place)});
  return Failed();
}

void ModelBuilder::CheckParamUse() {
  const std::vector<std::vector<NodeId>> users = graph_.graph().Users();
  for (const ParamUse& param : params_) {
    if (!users[static_cast<size_t>(param.value)].empty()) continue;
    Fail(absl::StrCat("parameter `", graph_.graph().value(param.value).name, "` is never used"),
         param.site);
  }
}

absl::StatusOr<Graph> ModelBuilder::Finish() && {
  const std::vector<GraphOutput>& outputs = graph_.graph().outputs();
  const bool has_loss = std::any_of(outputs.begin(), outputs.end(), [](const GraphOutput& output) {
    return output.kind == OutputKind::kLoss;
  });
  if (errors_.empty()) CheckParamUse();
  if (errors_.empty() && adapter_ != nullptr) {
    for (const std::string& layer : adapter_->Unmet()) {
      errors_.Add({/*label=*/"", absl::StrCat("no linear layer `", layer, "` to adapt")});
    }
  }
  if (errors_.empty() && !has_loss) {
    errors_.Add({/*label=*/"", absl::StrCat("model `", graph_.graph().name(), "` has no loss")});
  }
  MGC_RETURN_IF_ERROR(errors_.ToStatus());
  graph_.set_num_layers(num_layers_);
  return std::move(graph_).Finish();
}

}  // namespace mgc
