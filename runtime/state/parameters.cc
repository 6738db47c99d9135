#include "runtime/state/parameters.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "graph/types/tile_runs.h"
#include "kernels/cpu/random/random.h"
#include "kernels/shared/dropout.h"
#include "runtime/state/narrow_values.h"
#include "runtime/state/quantize_values.h"

namespace mgc {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 16;  // values of a block

// What a parameter begins with.
struct FirstValues {
  const Attrs& init;
  RandomStream stream;
  Parallel& workers;

  void Write(int64_t whole, absl::Span<float> values) const {
    const std::string& kind = init.Text("init");
    const auto count = static_cast<int64_t>(values.size());
    if (kind == "normal") {
      cpu::FillNormal(workers, stream, IndexGrid::Run(whole, count), init.Real("std"),
                      values.data());
    } else {
      std::fill(values.begin(), values.end(), kind == "ones" ? 1.0f : 0.0f);
    }
  }
};

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

// Puts values of a run into the arena of its rank.
void PutRun(Executor& executor, const RunHere& run, int64_t tile, DType dtype,
            absl::Span<const float> values) {
  executor.Put(run.rank, tile + run.at * SizeOf(dtype), run.count * SizeOf(dtype),
               [&](char* to) { WriteValues(values, dtype, to); });
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

void InitializeParameters(uint64_t seed, Executor& executor) {
  const absl::StatusOr<std::vector<HeldTensor>> held =
      HeldTensors(executor.plan(), TensorRole::kParam, Holders::kAll);
  MGC_CHECK(held.ok()) << held.status().ToString();
  for (const HeldTensor& tensor : *held) {
    const FirstValues first = {*tensor.init, {seed, StreamOf(tensor.name)}, executor.workers()};
    const absl::Status filled =
        FillRunsHere(tensor, executor, [&](int64_t whole, absl::Span<float> values, bool) {
          first.Write(whole, values);
          return absl::OkStatus();
        });
    MGC_CHECK(filled.ok()) << filled.ToString();
  }
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

namespace {

absl::Status FillRuns(const HeldTensor& tensor, Executor& executor, FillFunction fill) {
  std::vector<float> values;
  absl::Status status;
  ForEachBlock(RunsHere(executor, tensor, true), [&](absl::Span<const RunHere> block) {
    if (!status.ok()) return;
    values.resize(ValuesOf(block));
    status = fill(block[0].whole, absl::MakeSpan(values), block[0].counts);
    if (!status.ok()) return;
    for (const RunHere& run : block) {
      const float* const from = &values[static_cast<size_t>(run.whole - block[0].whole)];
      PutRun(executor, run, tensor.address, tensor.type->dtype,
             {from, static_cast<size_t>(run.count)});
    }
  });
  return status;
}

// Of weights as whole numbers: the scales first, then what the numbers are to be multiplied with.
absl::Status FillQuantized(const HeldTensor& tensor, Executor& executor, FillFunction fill) {
  const HeldScales& scales = *tensor.scales;
  MGC_ASSIGN_OR_RETURN(
      const ChannelScales channels,
      ChannelScales::Of(
          SizesOf(*tensor.type), scales.first_dim, scales.type->ndim(),
          [&](int64_t whole, absl::Span<float> values) { return fill(whole, values, false); }));
  const HeldTensor of_scales = {tensor.name,    scales.type,       scales.sharding,
                                scales.address, tensor.rank_class, false};
  MGC_RETURN_IF_ERROR(
      FillRuns(of_scales, executor, [&](int64_t whole, absl::Span<float> values, bool) {
        channels.CopyScales(whole, values);
        return absl::OkStatus();
      }));
  return FillRuns(tensor, executor,
                  [&](int64_t whole, absl::Span<float> values, bool counts) -> absl::Status {
                    MGC_RETURN_IF_ERROR(fill(whole, values, counts));
                    channels.Quantize(whole, values);
                    return absl::OkStatus();
                  });
}

}  // namespace

absl::Status FillRunsHere(const HeldTensor& tensor, Executor& executor, FillFunction fill) {
  return tensor.scales.has_value() ? FillQuantized(tensor, executor, fill)
                                   : FillRuns(tensor, executor, fill);
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
  MGC_RETURN_IF_ERROR(CheckHeldAsCalled(held));
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
