#include "graph/ir/assemble.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/step_names.h"
#include "graph/weights/adapters.h"
#include "graph/weights/quantized.h"

namespace mgc {
namespace {

absl::Status Refuse(absl::string_view label, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [", label, "]"));
}

const AttrSpec* FindSpec(absl::Span<const AttrSpec> specs, absl::string_view name) {
  for (const AttrSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

absl::string_view NameOf(AttrKind kind) {
  constexpr absl::string_view kNames[] = {"an integer", "a real number", "a string",
                                          "a list of integers"};
  return kNames[static_cast<int>(kind)];
}

absl::Status CheckInputAttrValue(const Attrs::Entry& entry) {
  if (entry.first == "init") {
    const std::string& init = std::get<std::string>(entry.second);
    if (init != "normal" && init != "zeros" && init != "ones") {
      return Refuse("input_c2", absl::StrCat("`init` is normal, zeros or ones, not \"",
                                             EscapeBytes(init), "\""));
    }
  } else if (entry.first == "std") {
    const double std = std::get<double>(entry.second);
    if (!std::isfinite(std) || std < 0) {
      return Refuse("input_c2", absl::StrCat("`std` is finite and not negative, not ", std));
    }
  } else if (entry.first == "decay") {
    const int64_t decay = std::get<int64_t>(entry.second);
    if (decay != 0 && decay != 1) {
      return Refuse("input_c2", absl::StrCat("`decay` is 0 or 1, not ", decay));
    }
  } else if (entry.first == kTrainAttr || entry.first == kAdapterAttr) {
    const int64_t flag = std::get<int64_t>(entry.second);
    if (flag != 0 && flag != 1) {
      return Refuse("input_c2", absl::StrCat("`", entry.first, "` is 0 or 1, not ", flag));
    }
  } else if (entry.first == kOptimizerAttr) {
    const std::string& name = std::get<std::string>(entry.second);
    if (FindOptimizer(name) == nullptr) {
      std::vector<absl::string_view> known;
      for (const Optimizer& optimizer : Optimizers()) known.push_back(optimizer.name);
      return Refuse("input_c2", absl::StrCat("`optimizer` is one of ", absl::StrJoin(known, ", "),
                                             ", not \"", EscapeBytes(name), "\""));
    }
  } else if (entry.first == kRateScaleAttr || entry.first == kDecayScaleAttr) {
    const double scale = std::get<double>(entry.second);
    if (!std::isfinite(scale) || scale < 0) {
      return Refuse("input_c2",
                    absl::StrCat("`", entry.first, "` is finite and not negative, not ", scale));
    }
  } else if (entry.first == kChannelsAttr) {
    const int64_t dim = std::get<int64_t>(entry.second);
    if (dim < 0 || dim >= kMaxDims) {
      return Refuse("input_c2", absl::StrCat("`", kChannelsAttr, "` lies between 0 and ",
                                             kMaxDims - 1, ", not ", dim));
    }
  } else if (entry.first == kRowDimsAttr) {
    const int64_t dims = std::get<int64_t>(entry.second);
    if (dims < 1 || dims >= kMaxDims) {
      return Refuse("input_c2", absl::StrCat("`", kRowDimsAttr, "` lies between 1 and ",
                                             kMaxDims - 1, ", not ", dims));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTypeBounds(const TensorType& type) {
  if (type.ndim() > kMaxDims) {
    return Refuse("type_c1",
                  absl::StrCat("a value has at most ", kMaxDims, " dims, not ", type.ndim()));
  }
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    if (dim.size < 1 || dim.multiple < 1 || dim.multiple > kMaxDimMultiple) {
      return Refuse("type_c1", absl::StrCat("a dim has a size of at least 1 and a multiple between "
                                            "1 and ",
                                            kMaxDimMultiple, ": ", type.ToString()));
    }
    if (dim.size > kMaxElements / elements) {
      return Refuse("type_c1",
                    absl::StrCat("a value has at most 2^50 elements: ", type.ToString()));
    }
    elements *= dim.size;
  }
  return absl::OkStatus();
}

void CoerceAttrs(absl::Span<const AttrSpec> specs, Attrs* attrs) {
  for (const AttrSpec& spec : specs) {
    const AttrValue* value = attrs->Find(spec.name);
    if (value == nullptr || spec.kind != AttrKind::kReal) continue;
    if (const int64_t* integer = std::get_if<int64_t>(value)) {
      attrs->Set(spec.name, static_cast<double>(*integer));
    }
  }
}

absl::Span<const AttrSpec> InputAttrSpecs(InputKind kind) {
  static const auto* const param = new std::vector<AttrSpec>{
      {"init", AttrKind::kText, false},          {"std", AttrKind::kReal, false},
      {"decay", AttrKind::kInt, false},          {kTrainAttr, AttrKind::kInt, false},
      {kOptimizerAttr, AttrKind::kText, false},  {kRateScaleAttr, AttrKind::kReal, false},
      {kDecayScaleAttr, AttrKind::kReal, false}, {kRowDimsAttr, AttrKind::kInt, false},
      {kAdapterAttr, AttrKind::kInt, false},     {kChannelsAttr, AttrKind::kInt, false}};
  static const auto* const owned = new std::vector<AttrSpec>{{"of", AttrKind::kText, true}};
  if (kind == InputKind::kParam) return *param;
  static const auto* const state = new std::vector<AttrSpec>{{"of", AttrKind::kText, false}};
  if (kind == InputKind::kState) return *state;
  if (kind == InputKind::kAccumulator) return *owned;
  return {};
}

absl::Status CheckInputAttrs(InputKind kind, const Attrs& attrs) {
  const absl::Span<const AttrSpec> specs = InputAttrSpecs(kind);
  for (const AttrSpec& spec : specs) {
    if (spec.required && attrs.Find(spec.name) == nullptr) {
      return Refuse("input_c3", absl::StrCat("`", spec.name, "` is missing"));
    }
  }
  for (const Attrs::Entry& entry : attrs) {
    const AttrSpec* spec = FindSpec(specs, entry.first);
    if (spec == nullptr) {
      std::vector<absl::string_view> names;
      for (const AttrSpec& known : specs) names.push_back(known.name);
      return Refuse("input_c4",
                    absl::StrCat("a ", mgc::NameOf(kind), " input has no attribute `",
                                 EscapeBytes(entry.first), "`", DidYouMean(entry.first, names)));
    }
    if (entry.second.index() != static_cast<size_t>(spec->kind)) {
      return Refuse("input_c1", absl::StrCat("`", spec->name, "` is ", NameOf(spec->kind)));
    }
    MGC_RETURN_IF_ERROR(CheckInputAttrValue(entry));
  }
  return absl::OkStatus();
}

absl::StatusOr<const OpDef*> FindOpOrSuggest(absl::string_view name) {
  if (const OpDef* op = FindOp(name); op != nullptr) return op;
  std::vector<absl::string_view> names;
  for (const OpDef& op : AllOps()) names.push_back(op.name);
  return Refuse("text_c5",
                absl::StrCat("unknown op `", EscapeBytes(name), "`", DidYouMean(name, names)));
}

absl::StatusOr<std::vector<TensorType>> InferNode(const OpDef& op, const Attrs& attrs,
                                                  absl::Span<const TensorType* const> operands) {
  MGC_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferTypes(op, attrs, operands));
  for (const TensorType& type : types) {
    if (absl::Status status = CheckTypeBounds(type); !status.ok()) return Annotate(status, op.name);
  }
  return types;
}

bool TypesAgree(const TensorType& written, const TensorType& inferred) {
  return written.dtype == inferred.dtype &&
         std::equal(written.dims.begin(), written.dims.end(), inferred.dims.begin(),
                    inferred.dims.end(),
                    [](const Dim& a, const Dim& b) { return a.size == b.size; });
}

absl::Status CheckShardingBounds(const TensorType& type, const Sharding& sharding,
                                 const Mesh& mesh) {
  const AxisSet unknown = sharding.UsedAxes() - mesh.AllAxes();
  if (!unknown.empty()) {
    return Refuse("sharding_c4", absl::StrCat("axis number ", *unknown.begin(), " of a mesh with ",
                                              mesh.num_axes(), " axes"));
  }
  return CheckSharding(type, sharding, mesh);
}

}  // namespace mgc
