#include "runtime/state/held_tensors.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "graph/ir/step_names.h"
#include "graph/weights/quantized.h"

namespace mgc {
namespace {

// One parameter as one class holds it for one layer.
struct HeldParam {
  const PlanClass& plan_class;
  const HeldBlock& held;
  const ParamEntry& entry;

  std::string name() const { return NameForLayer(entry.name, held.layer); }
};

absl::Status ForEachParam(const Plan& plan, absl::FunctionRef<absl::Status(const HeldParam&)> fn) {
  for (const PlanClass& plan_class : plan.classes) {
    for (const HeldBlock& held : plan_class.blocks) {
      if (held.block < 0 || held.block >= static_cast<int>(plan.blocks.size())) {
        return absl::InvalidArgumentError(absl::StrCat("there is no block ", held.block));
      }
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        const HeldParam param{plan_class, held, entry};
        MGC_RETURN_IF_ERROR(Annotate(fn(param), param.name()));
      }
    }
  }
  return absl::OkStatus();
}

int64_t AddressOfGradient(const Plan& plan, const HeldParam& param) {
  return GradientAddress(plan, param.plan_class, param.held, param.entry);
}

// The states of optimizers that there are roles for.
constexpr absl::string_view kFirst = "m";
constexpr absl::string_view kSecond = "v";

absl::string_view StateOf(TensorRole role) {
  return role == TensorRole::kFirstMoment ? kFirst : kSecond;
}

bool Has(const HeldParam& param, TensorRole role) {
  if (role == TensorRole::kParam) return true;
  if (role == TensorRole::kMeanGradient) return IsTrained(param.entry.init);
  return FindState(param.entry, StateOf(role)) != nullptr;
}

// Of a tensor that the parameter has; -1 of a gradient that is not kept.
int64_t AddressOf(const Plan& plan, const HeldParam& param, TensorRole role) {
  switch (role) {
    case TensorRole::kParam:
      return param.held.param_base + param.entry.param_offset;
    case TensorRole::kMeanGradient:
      return AddressOfGradient(plan, param);
    case TensorRole::kFirstMoment:
    case TensorRole::kSecondMoment:
      return param.held.state_base + FindState(param.entry, StateOf(role))->offset;
  }
  return -1;
}

absl::Status CheckTile(const TensorType& type, const Sharding& sharding, const Plan& plan,
                       int64_t address, int64_t peak) {
  MGC_RETURN_IF_ERROR(CheckSharding(type, sharding, plan.mesh));
  constexpr double kMostElements = 1e12;  // of a whole parameter
  double elements = 1;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    const Dim& dim = type.dims[d];
    if (dim.size < 1 || dim.multiple < 1 || dim.multiple > int64_t{1} << 30) {
      return absl::InvalidArgumentError("has a dim without elements");
    }
    elements *= static_cast<double>(dim.size + dim.multiple * plan.mesh.Size(sharding.dims[d]));
  }
  if (elements > kMostElements) {
    const auto bytes = [&](double count) {
      return BytesText(static_cast<int64_t>(count * static_cast<double>(SizeOf(type.dtype))));
    };
    return absl::InvalidArgumentError(
        absl::StrCat("has up to ", elements, " elements with its padding, ", bytes(elements),
                     "; a run holds at most ", kMostElements, ", ", bytes(kMostElements)));
  }
  const int64_t bytes = LocalElements(type, sharding, plan.mesh) * SizeOf(type.dtype);
  const bool inside = address >= 0 && address <= peak - bytes && address % 8 == 0;
  return inside ? absl::OkStatus() : absl::InvalidArgumentError("lies outside the arena");
}

absl::Status CheckInit(const Attrs& init) {
  const AttrValue* kind = init.Find("init");
  const std::string* text = kind != nullptr ? std::get_if<std::string>(kind) : nullptr;
  const AttrValue* std = init.Find("std");
  if (text != nullptr && (*text == "zeros" || *text == "ones")) return absl::OkStatus();
  if (text != nullptr && *text == "normal" && std != nullptr &&
      std::holds_alternative<double>(*std)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("says not how it starts");
}

// The parameter of the same layer that is called so; null where there is none.
const ParamEntry* FindBeside(const Plan& plan, const HeldParam& param, const std::string& name) {
  for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(param.held.block)].entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// Of `w.int8`: `w.scale` of the same layer; null where that is not there or of other dims.
const ParamEntry* ScaleOf(const Plan& plan, const HeldParam& param) {
  const ParamEntry& entry = param.entry;
  absl::string_view source = entry.name;
  if (!absl::ConsumeSuffix(&source, kQuantizedSuffix)) return nullptr;
  const ParamEntry* scale = FindBeside(plan, param, absl::StrCat(source, kScaleSuffix));
  if (scale == nullptr || scale->type.dtype != DType::kF32) return nullptr;
  const int64_t first = entry.init.Int(kChannelsAttr, -1), count = scale->type.ndim();
  if (first < 0 || first + count > entry.type.ndim()) return nullptr;
  const auto dims = entry.type.dims.begin() + first;
  return std::equal(dims, dims + count, scale->type.dims.begin()) ? scale : nullptr;
}

// Whether it is what ScaleOf gives of another one.
bool IsScale(const Plan& plan, const HeldParam& param) {
  absl::string_view source = param.entry.name;
  if (!absl::ConsumeSuffix(&source, kScaleSuffix)) return false;
  const ParamEntry* numbers = FindBeside(plan, param, absl::StrCat(source, kQuantizedSuffix));
  return numbers != nullptr && numbers->type.dtype == DType::kI8;
}

absl::Status CheckElements(const Plan& plan, const HeldParam& param) {
  const DType dtype = param.entry.type.dtype;
  if (dtype != DType::kF32 && IsTrained(param.entry.init)) {
    return absl::UnimplementedError("is trained, and not of f32");
  }
  if (dtype == DType::kI8) {
    if (ScaleOf(plan, param) != nullptr) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("is of i8, and no `", kScaleSuffix,
                                                 "` beside it has a scale for its channels"));
  }
  return WideOf(dtype) == DType::kF32 ? absl::OkStatus()
                                      : absl::UnimplementedError("is not of f32");
}

HeldTensor HeldTensorOf(const Plan& plan, const HeldParam& param, TensorRole role) {
  const ParamEntry& entry = param.entry;
  const bool is_param = role == TensorRole::kParam;
  HeldTensor held = {param.name(),
                     &entry.type,
                     is_param ? &entry.sharding : &entry.state_sharding,
                     AddressOf(plan, param, role),
                     param.plan_class.coordinate,
                     param.held.owner,
                     &entry.init};
  if (entry.type.dtype != DType::kI8) return held;
  held.name = std::string(absl::StripSuffix(held.name, kQuantizedSuffix));
  const ParamEntry& scale = *ScaleOf(plan, param);
  held.scales = HeldScales{&scale.type, &scale.sharding, param.held.param_base + scale.param_offset,
                           static_cast<int>(entry.init.Int(kChannelsAttr))};
  return held;
}

}  // namespace

absl::Status CheckParameters(const Plan& plan) {
  return ForEachParam(plan, [&](const HeldParam& param) -> absl::Status {
    const ParamEntry& entry = param.entry;
    const int64_t peak = param.plan_class.memory.peak;
    constexpr int64_t kMost = int64_t{1} << 50;
    for (int64_t part :
         {param.held.param_base, param.held.grad_base, entry.param_offset, entry.gradient_offset}) {
      if (part < 0 || part > kMost) return absl::InvalidArgumentError("lies outside the arena");
    }
    MGC_RETURN_IF_ERROR(CheckElements(plan, param));
    MGC_RETURN_IF_ERROR(CheckInit(entry.init));
    for (const ParamState& state : entry.states) {
      if (state.name == kFirst || state.name == kSecond) continue;
      return absl::UnimplementedError(absl::StrCat("keeps a state `", EscapeBytes(state.name),
                                                   "`, of which checkpoints have no file"));
    }
    if (const int64_t gradient = AddressOfGradient(plan, param);
        param.held.owner && gradient >= 0) {
      MGC_RETURN_IF_ERROR(CheckTile(entry.type, entry.state_sharding, plan, gradient, peak));
    }
    return CheckTile(entry.type, entry.sharding, plan, param.held.param_base + entry.param_offset,
                     peak);
  });
}

absl::StatusOr<std::vector<HeldTensor>> HeldTensors(const Plan& plan, TensorRole role,
                                                    Holders holders) {
  std::vector<HeldTensor> tensors;
  std::vector<HeldTensor> quantized;
  absl::flat_hash_set<std::string> names;
  MGC_RETURN_IF_ERROR(ForEachParam(plan, [&](const HeldParam& param) -> absl::Status {
    if (!param.held.owner && holders == Holders::kOwners) return absl::OkStatus();
    if (!Has(param, role) || IsScale(plan, param)) return absl::OkStatus();
    MGC_RETURN_IF_ERROR(CheckElements(plan, param));
    HeldTensor held = HeldTensorOf(plan, param, role);
    if (held.address < 0) return absl::FailedPreconditionError("its gradient is not kept");
    if (held.scales.has_value()) {
      quantized.push_back(std::move(held));
    } else {
      names.insert(held.name);
      tensors.push_back(std::move(held));
    }
    return absl::OkStatus();
  }));
  for (HeldTensor& held : quantized) {
    held.owner = held.owner && !names.contains(held.name);
    tensors.push_back(std::move(held));
  }
  if (holders == Holders::kOwners) {
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [](const HeldTensor& held) { return !held.owner; }),
                  tensors.end());
  }
  return tensors;
}

absl::Status CheckHeldAsCalled(absl::Span<const HeldTensor> tensors) {
  for (const HeldTensor& tensor : tensors) {
    if (!tensor.scales.has_value()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "parameter ", tensor.name, " is held as whole numbers, of which it cannot be made again"));
  }
  return absl::OkStatus();
}

}  // namespace mgc
