#include "runtime/state/parameters.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "graph/ir/step_names.h"
#include "graph/types/tile_runs.h"
#include "kernels/cpu/random/random.h"
#include "kernels/shared/dropout.h"
#include "runtime/state/narrow_values.h"

namespace mgc {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 16;  // values of a block

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

void InitializeTile(const HeldParam& param, uint64_t seed, int64_t rank, Executor& executor) {
  const std::string init = param.entry.init.Text("init");
  const int64_t tile = param.held.param_base + param.entry.param_offset;
  const RandomStream stream{seed, StreamOf(param.name())};
  const DType dtype = param.entry.type.dtype;
  std::vector<float> rounded;
  ForEachRun(param.entry.type, param.entry.sharding, executor.plan().mesh, rank,
             [&](int64_t at, int64_t whole, int64_t count) {
               const auto fill = [&](char* to) {
                 rounded.resize(dtype == DType::kF32 ? 0 : static_cast<size_t>(count));
                 float* const values =
                     rounded.empty() ? reinterpret_cast<float*>(to) : rounded.data();
                 if (init == "normal") {
                   cpu::FillNormal(executor.workers(), stream, IndexGrid::Run(whole, count),
                                   param.entry.init.Real("std"), values);
                 } else {
                   std::fill_n(values, count, init == "ones" ? 1.0f : 0.0f);
                 }
                 if (!rounded.empty()) WriteValues(rounded, dtype, to);
               };
               executor.Put(rank, tile + at * SizeOf(dtype), count * SizeOf(dtype), fill);
             });
}

// Values that a rank here holds side by side, and so does the whole tensor.
struct RunHere {
  int64_t whole = 0;  // where they begin in the tensor, ...
  int64_t count = 0;  // at most kAtOnce
  int64_t rank = 0;
  int64_t at = 0;      // ... and in the rank's tile
  bool counts = true;  // over all processes, ranks and holders once for each value
};

// In the order of the whole tensor; of replicas the one that counts first. `replicas`: all there
// are, else those alone that count.
std::vector<RunHere> RunsHere(const Executor& executor, const HeldTensor& tensor, bool replicas) {
  const Plan& plan = executor.plan();
  AxisSet pipeline;
  if (PipelineAxis(plan.mesh) >= 0) pipeline.Add(PipelineAxis(plan.mesh));
  std::vector<RunHere> runs;
  for (int64_t rank = executor.local().begin; rank < executor.local().end; ++rank) {
    if (ClassOfRank(plan.mesh, rank) != tensor.rank_class) continue;
    const bool first = IsFirstReplica(*tensor.sharding, pipeline, plan.mesh, rank);
    if (!first && !replicas) continue;
    ForEachRun(*tensor.type, *tensor.sharding, plan.mesh, rank,
               [&](int64_t at, int64_t whole, int64_t count) {
                 for (int64_t done = 0; done < count; done += kAtOnce) {
                   runs.push_back({whole + done, std::min(count - done, kAtOnce), rank, at + done,
                                   first && tensor.owner});
                 }
               });
  }
  std::sort(runs.begin(), runs.end(), [](const RunHere& a, const RunHere& b) {
    return std::make_tuple(a.whole, !a.counts, a.rank) <
           std::make_tuple(b.whole, !b.counts, b.rank);
  });
  return runs;
}

size_t ValuesOf(absl::Span<const RunHere> block) {
  return static_cast<size_t>(block.back().whole + block.back().count - block.front().whole);
}

// Joins runs that lie side by side in the whole tensor, whoever holds them: of ranks that hold
// columns, rows. What counts and what does not are apart.
void ForEachBlock(absl::Span<const RunHere> runs,
                  absl::FunctionRef<void(absl::Span<const RunHere>)> fn) {
  size_t begin = 0;
  for (size_t i = 1; i <= runs.size(); ++i) {
    if (i < runs.size()) {
      const RunHere& last = runs[i - 1];
      const RunHere& next = runs[i];
      if (next.whole == last.whole) continue;  // a replica
      const bool joins = next.whole == last.whole + last.count &&
                         next.counts == runs[begin].counts &&
                         next.whole + next.count - runs[begin].whole <= kAtOnce;
      if (joins) continue;
    }
    fn(runs.subspan(begin, i - begin));
    begin = i;
  }
}

// The values of a run, from the arena of its rank.
void GetRun(const Executor& executor, const HeldTensor& tensor, const RunHere& run, float* to) {
  const DType dtype = tensor.type->dtype;
  const int64_t at = tensor.address + run.at * SizeOf(dtype);
  const int64_t bytes = run.count * SizeOf(dtype);
  if (dtype == DType::kF32) return executor.Get(run.rank, at, bytes, to);
  std::string narrow(static_cast<size_t>(bytes), '\0');
  executor.Get(run.rank, at, bytes, &narrow[0]);
  ReadValues(narrow.data(), dtype, absl::MakeSpan(to, static_cast<size_t>(run.count)));
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
    if (WideOf(entry.type.dtype) != DType::kF32) return absl::UnimplementedError("is not of f32");
    if (entry.type.dtype != DType::kF32 && IsTrained(entry.init)) {
      return absl::UnimplementedError("is trained, and not of f32");
    }
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

void InitializeParameters(uint64_t seed, Executor& executor) {
  const absl::Status status =
      ForEachParam(executor.plan(), [&](const HeldParam& param) -> absl::Status {
        const RankRange& local = executor.local();
        for (int64_t rank = local.begin; rank < local.end; ++rank) {
          if (ClassOfRank(executor.plan().mesh, rank) != param.plan_class.coordinate) continue;
          InitializeTile(param, seed, rank, executor);
        }
        return absl::OkStatus();
      });
  MGC_CHECK(status.ok()) << status.ToString();
}

absl::StatusOr<std::vector<HeldTensor>> HeldTensors(const Plan& plan, TensorRole role,
                                                    Holders holders) {
  std::vector<HeldTensor> tensors;
  MGC_RETURN_IF_ERROR(ForEachParam(plan, [&](const HeldParam& param) -> absl::Status {
    const ParamEntry& entry = param.entry;
    if (!param.held.owner && holders == Holders::kOwners) return absl::OkStatus();
    if (!Has(param, role)) return absl::OkStatus();
    const bool is_param = role == TensorRole::kParam;
    tensors.push_back(
        {param.name(), &entry.type, is_param ? &entry.sharding : &entry.state_sharding,
         AddressOf(plan, param, role), param.plan_class.coordinate, param.held.owner});
    if (tensors.back().address < 0) {
      return absl::FailedPreconditionError("its gradient is not kept");
    }
    return absl::OkStatus();
  }));
  return tensors;
}

void ForEachRunHere(const Executor& executor, const HeldTensor& tensor,
                    absl::FunctionRef<void(int64_t whole, absl::Span<float> values)> fn) {
  std::vector<float> values;
  ForEachBlock(RunsHere(executor, tensor, false), [&](absl::Span<const RunHere> block) {
    values.resize(ValuesOf(block));
    for (const RunHere& run : block) {
      GetRun(executor, tensor, run, &values[static_cast<size_t>(run.whole - block[0].whole)]);
    }
    fn(block[0].whole, absl::MakeSpan(values));
  });
}

int64_t CountValuesHere(const Executor& executor, const HeldTensor& tensor) {
  int64_t count = 0;
  for (const RunHere& run : RunsHere(executor, tensor, false)) count += run.count;
  return count;
}

int64_t CopyValuesHere(const Executor& executor, const HeldTensor& tensor, Parallel& parallel,
                       absl::Span<float> to) {
  const std::vector<RunHere> runs = RunsHere(executor, tensor, false);
  std::vector<int64_t> begins = {0};
  for (const RunHere& run : runs) begins.push_back(begins.back() + run.count);
  MGC_CHECK(begins.back() <= static_cast<int64_t>(to.size())) << tensor.name;
  const auto number = static_cast<int64_t>(runs.size());
  const int64_t grain = kAtOnce * number / std::max<int64_t>(begins.back(), 1);
  parallel.For(number, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      GetRun(executor, tensor, runs[i], to.data() + begins[i]);
    }
  });
  return begins.back();
}

int64_t ForEachRunOfCopy(const Executor& executor, const HeldTensor& tensor, absl::Span<float> copy,
                         absl::FunctionRef<void(int64_t whole, absl::Span<float> values)> fn) {
  size_t done = 0;
  ForEachBlock(RunsHere(executor, tensor, false), [&](absl::Span<const RunHere> block) {
    fn(block[0].whole, copy.subspan(done, ValuesOf(block)));
    done += ValuesOf(block);
  });
  return static_cast<int64_t>(done);
}

absl::Status FillRunsHere(const HeldTensor& tensor, Executor& executor, FillFunction fill) {
  std::vector<float> values;
  absl::Status status;
  ForEachBlock(RunsHere(executor, tensor, true), [&](absl::Span<const RunHere> block) {
    if (!status.ok()) return;
    values.resize(ValuesOf(block));
    status = fill(block[0].whole, absl::MakeSpan(values), block[0].counts);
    if (!status.ok()) return;
    for (const RunHere& run : block) {
      const float* const from = &values[static_cast<size_t>(run.whole - block[0].whole)];
      const DType dtype = tensor.type->dtype;
      executor.Put(run.rank, tensor.address + run.at * SizeOf(dtype), run.count * SizeOf(dtype),
                   [&](char* to) {
                     WriteValues({from, static_cast<size_t>(run.count)}, dtype, to);
                   });
    }
  });
  return status;
}

absl::StatusOr<std::vector<LogicalTensor>> GatherTensors(const Executor& executor,
                                                         TensorRole role) {
  if (const int processes = executor.team().size(); processes > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("tensors of a run in ", processes, " processes cannot be gathered in one"));
  }
  float factor = 1;
  if (role == TensorRole::kMeanGradient) {
    MGC_ASSIGN_OR_RETURN(const double reported, executor.Report(kGradFactorReport, false));
    factor = static_cast<float>(reported);
  }
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> held, HeldTensors(executor.plan(), role));
  std::vector<LogicalTensor> tensors;
  tensors.reserve(held.size());
  for (const HeldTensor& from : held) {
    LogicalTensor& tensor = tensors.emplace_back();
    tensor.name = from.name;
    tensor.shape = SizesOf(*from.type);
    tensor.values.resize(static_cast<size_t>(NumElements(tensor.shape)));
    ForEachRunHere(executor, from, [&](int64_t whole, absl::Span<float> values) {
      std::transform(values.begin(), values.end(), tensor.values.begin() + whole,
                     [&](float value) { return value * factor; });
    });
  }
  return tensors;
}

}  // namespace mgc
