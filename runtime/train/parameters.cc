#include "runtime/train/parameters.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "graph/ir/step_names.h"
#include "graph/types/tile_runs.h"
#include "kernels/cpu/random/random.h"

namespace mgc {
namespace {

constexpr int64_t kFloat = sizeof(float);

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

absl::Status CheckTile(const TensorType& type, const Sharding& sharding, const Plan& plan,
                       int64_t address, int64_t peak) {
  MGC_RETURN_IF_ERROR(CheckSharding(type, sharding, plan.mesh));
  constexpr double kMostElements = 1e12;  // of a whole parameter
  double elements = 1;
  for (const Dim& dim : type.dims) {
    if (dim.size < 1 || dim.multiple < 1 || dim.multiple > int64_t{1} << 30) {
      return absl::InvalidArgumentError("has a dim without elements");
    }
    elements *= static_cast<double>(dim.size + dim.multiple * plan.mesh.world_size());
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

void InitializeTile(const HeldParam& param, uint64_t seed, int64_t rank, Executor& executor) {
  const std::string init = param.entry.init.Text("init");
  const int64_t tile = param.held.param_base + param.entry.param_offset;
  const cpu::RandomStream stream{seed, StreamOf(param.name())};
  ForEachRun(param.entry.type, param.entry.sharding, executor.plan().mesh, rank,
             [&](int64_t at, int64_t whole, int64_t count) {
               const auto fill = [&](char* to) {
                 float* const values = reinterpret_cast<float*>(to);
                 if (init == "normal") {
                   cpu::FillNormal(executor.workers(), stream, cpu::IndexGrid::Run(whole, count),
                                   param.entry.init.Real("std"), values);
                 } else {
                   std::fill_n(values, count, init == "ones" ? 1.0f : 0.0f);
                 }
               };
               executor.Put(rank, tile + at * kFloat, count * kFloat, fill);
             });
}

LogicalTensor Gather(const HeldParam& param, const Sharding& sharding, int64_t address,
                     const Executor& executor) {
  const Plan& plan = executor.plan();
  LogicalTensor tensor;
  tensor.name = param.name();
  for (const Dim& dim : param.entry.type.dims) tensor.shape.push_back(dim.size);
  tensor.values.resize(static_cast<size_t>(NumElements(tensor.shape)));
  AxisSet pipeline;
  if (PipelineAxis(plan.mesh) >= 0) pipeline.Add(PipelineAxis(plan.mesh));
  for (int64_t rank : RanksOfClass(plan, param.plan_class.coordinate)) {
    if (!IsFirstReplica(sharding, pipeline, plan.mesh, rank)) continue;
    ForEachRun(
        param.entry.type, sharding, plan.mesh, rank, [&](int64_t at, int64_t whole, int64_t count) {
          executor.Get(rank, address + at * kFloat, count * kFloat, tensor.values.data() + whole);
        });
  }
  return tensor;
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
    if (entry.type.dtype != DType::kF32) return absl::UnimplementedError("is not of f32");
    MGC_RETURN_IF_ERROR(CheckInit(entry.init));
    if (const int64_t gradient = AddressOfGradient(plan, param);
        param.held.owner && gradient >= 0) {
      MGC_RETURN_IF_ERROR(CheckTile(entry.type, entry.state_sharding, plan, gradient, peak));
    }
    return CheckTile(entry.type, entry.sharding, plan, param.held.param_base + entry.param_offset,
                     peak);
  });
}

void InitializeParameters(uint64_t seed, Executor& executor) {
  const absl::Status status =
      ForEachParam(executor.plan(), [&](const HeldParam& param) -> absl::Status {
        for (int64_t rank : RanksOfClass(executor.plan(), param.plan_class.coordinate)) {
          if (!executor.local().Contains(rank)) continue;
          InitializeTile(param, seed, rank, executor);
        }
        return absl::OkStatus();
      });
  MGC_CHECK(status.ok()) << status.ToString();
}

absl::StatusOr<std::vector<LogicalTensor>> GatherTensors(const Executor& executor,
                                                         TensorRole role) {
  std::vector<LogicalTensor> tensors;
  float factor = 1;
  if (role == TensorRole::kMeanGradient) {
    MGC_ASSIGN_OR_RETURN(const double reported, executor.Report(kGradFactorReport, false));
    factor = static_cast<float>(reported);
  }
  MGC_RETURN_IF_ERROR(ForEachParam(executor.plan(), [&](const HeldParam& param) -> absl::Status {
    const ParamEntry& entry = param.entry;
    if (!param.held.owner) return absl::OkStatus();
    if (role == TensorRole::kParam) {
      tensors.push_back(
          Gather(param, entry.sharding, param.held.param_base + entry.param_offset, executor));
      return absl::OkStatus();
    }
    if (!IsTrained(entry.init)) return absl::OkStatus();
    const int64_t sum = AddressOfGradient(executor.plan(), param);
    if (sum < 0) return absl::FailedPreconditionError("its gradient is not kept");
    tensors.push_back(Gather(param, entry.state_sharding, sum, executor));
    for (float& value : tensors.back().values) value *= factor;
    return absl::OkStatus();
  }));
  return tensors;
}

}  // namespace mgc
