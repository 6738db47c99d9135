#include "tests/published/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "graph/types/machine.h"
#include "passes/compile.h"
#include "passes/plan/time/cost.h"
#include "passes/plan/time/predict_step.h"
#include "passes/plan/time/ring_time.h"
#include "tests/plan_forms/rewritten_plans.h"
#include "tests/published/stored_scores.h"

namespace mgc {
namespace {

constexpr double kTera = 1e12;
constexpr double kNsPerSecond = 1e9;
constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

// Boundaries as Megatron-LM sends them: each tensor-parallel rank a slice, which they then gather.
// A transfer's bytes are those that take as long.
Plan WithSlicedTransfers(Plan plan, int64_t tp) {
  std::vector<int64_t> group(static_cast<size_t>(tp));
  std::iota(group.begin(), group.end(), 0);
  const CostModel costs = {plan.mesh, plan.machine, plan.stages};
  for (PlanClass& plan_class : plan.classes) {
    for (Transfer& transfer : plan_class.train.transfers) {
      const NetworkTier& tier = TransferTier(costs, plan_class.coordinate, transfer.peer);
      const double gather =
          CollectiveSeconds(plan.machine, group, CollectiveKind::kAllGather, transfer.bytes);
      const double slice = static_cast<double>(transfer.bytes) / static_cast<double>(tp);
      transfer.bytes = static_cast<int64_t>(slice + gather * tier.At(slice));
    }
  }
  return plan;
}

absl::StatusOr<Plan> CompileRow(const PublishedRow& row, int64_t chunks) {
  MGC_ASSIGN_OR_RETURN(const ModelConfig config, ConfigOf(row));
  CompileOptions options;
  options.parallel = LayoutOf(row, chunks);
  // Full recomputation as the authors' is put into the plan (WithLayersRunAgain).
  if (row.recompute == RecomputeKind::kFull) options.parallel.recompute = RecomputeKind::kNone;
  options.run.check = false;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset(row.machine));
  const int64_t batch = row.dp * row.micro_batch;
  MGC_ASSIGN_OR_RETURN(const Graph graph, row.paper == kLlama3
                                              ? BuildModel(config, batch, row.seq)
                                              : BuildWithStoredScores(config, batch, row.seq));
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(graph, DimsOf(config), options));
  if (row.recompute == RecomputeKind::kFull) plan = WithLayersRunAgain(std::move(plan));
  if (!row.overlap) plan = OneAfterAnother(std::move(plan));
  const bool whole_boundaries = row.tp > 1 && !row.sequence_parallel;
  if (whole_boundaries) plan = WithSlicedTransfers(std::move(plan), row.tp);
  return plan;
}

double TflopsOf(const PublishedRow& row, int64_t step_ns) {
  const double seconds = static_cast<double>(step_ns) / kNsPerSecond;
  return FlopsOfStep(row) / seconds / static_cast<double>(row.gpus()) / kTera;
}

double StateGib(const Plan& plan) {
  const MemoryUse& memory = plan.classes[plan.classes.size() / 2].memory;
  return static_cast<double>(memory.params + memory.grads + memory.states + memory.copies) /
         kBytesPerGib;
}

absl::StatusOr<double> MeanErrorAt(const std::vector<PredictedRow>& rows, double factor) {
  MGC_ASSIGN_OR_RETURN(const std::vector<PredictedRow> scaled, WithProducts(rows, factor));
  return MeanError(scaled);
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigOf(const PublishedRow& row) {
  if (row.paper == kLlama3) {
    MGC_ASSIGN_OR_RETURN(ModelConfig config, LoadModelPreset("llama3-405b"));
    config.max_positions = std::max(config.max_positions, row.seq);
    return config;
  }
  MGC_ASSIGN_OR_RETURN(ModelConfig config, LoadModelPreset("gpt3-175b"));
  config.layers = row.layers;
  config.hidden = row.hidden;
  config.heads = config.kv_heads = row.heads;
  config.head_dim = row.hidden / row.heads;
  config.ffn = 4 * row.hidden;
  config.vocab = 51200;
  return config;
}

ParallelConfig LayoutOf(const PublishedRow& row, int64_t chunks) {
  ParallelConfig config;
  config.world_size = row.gpus();
  config.tp = row.tp;
  config.pp = row.pp;
  config.cp = row.cp;
  config.vp = chunks;
  config.sequence_parallel = row.sequence_parallel;
  config.micro_batch_size = row.micro_batch;
  config.global_batch_size = row.global_batch;
  config.seq_length = row.seq;
  config.schedule = chunks > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
  config.recompute = row.recompute;
  config.compute_type = DType::kBF16;
  if (row.paper == kLlama3) config.zero = 1;
  if (row.paper != kLlama3 && row.dp > 1) config.gradient_sums = DType::kBF16;
  return config;
}

double PredictedRow::error() const { return middle() / MeasuredTflops(row) - 1; }

double PredictedRow::state_error() const {
  return row.state_gib > 0 ? state_gib / row.state_gib - 1 : 0;
}

absl::StatusOr<PredictedRow> PredictRow(const PublishedRow& row) {
  PredictedRow predicted;
  predicted.row = row;
  for (const int64_t chunks : row.chunks) {
    MGC_ASSIGN_OR_RETURN(Plan plan, CompileRow(row, chunks));
    predicted.plans.push_back(std::move(plan));
  }
  predicted.state_gib = StateGib(predicted.plans.front());
  MGC_ASSIGN_OR_RETURN(std::vector<PredictedRow> one, WithProducts({std::move(predicted)}, 1));
  return std::move(one.front());
}

absl::StatusOr<std::vector<PredictedRow>> WithProducts(std::vector<PredictedRow> rows,
                                                       double factor) {
  for (PredictedRow& predicted : rows) {
    std::vector<double> tflops;
    for (Plan& plan : predicted.plans) {
      MGC_ASSIGN_OR_RETURN(plan.machine, FindMachinePreset(predicted.row.machine));
      for (ComputeRate& rate : plan.machine.compute) rate.flops *= factor;
      MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(plan));
      tflops.push_back(TflopsOf(predicted.row, step.makespan_ns));
    }
    predicted.least = *std::min_element(tflops.begin(), tflops.end());
    predicted.most = *std::max_element(tflops.begin(), tflops.end());
  }
  return rows;
}

double MeanError(const std::vector<PredictedRow>& rows) {
  double sum = 0;
  for (const PredictedRow& row : rows) sum += std::abs(row.error());
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

double WorstError(const std::vector<PredictedRow>& rows) {
  double worst = 0;
  for (const PredictedRow& row : rows) worst = std::max(worst, std::abs(row.error()));
  return worst;
}

absl::StatusOr<double> FitProducts(const std::vector<PredictedRow>& rows) {
  // The mean error falls, then rises: thirds of an interval shrink around where it is least.
  int low = 50, high = 150;
  while (high - low > 2) {
    const int left = low + (high - low) / 3, right = high - (high - low) / 3;
    MGC_ASSIGN_OR_RETURN(const double at_left, MeanErrorAt(rows, left / 100.0));
    MGC_ASSIGN_OR_RETURN(const double at_right, MeanErrorAt(rows, right / 100.0));
    (at_left < at_right ? high : low) = at_left < at_right ? right : left;
  }
  const int middle = (low + high) / 2;
  return middle / 100.0;
}

}  // namespace mgc
