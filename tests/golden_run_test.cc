// The runtime against golden values of an independent implementation (tests/golden): one step of
// every family in f32, on one rank and on four, starting from the golden parameters.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "graph/types/tile_runs.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "runtime/data/safetensors.h"
#include "runtime/state/parameters.h"
#include "runtime/train/trainer.h"
#include "tests/golden/golden.h"

namespace mgc {
namespace {

// Of a gradient's L2 norm, or of a thousandth of the largest one's: what the kernels of one op may
// be wrong by (OpCase::tolerance).
constexpr double kTolerance = 1e-5;

absl::StatusOr<Plan> CompileGolden(const Golden& golden, int64_t tp, int64_t dp) {
  MGC_ASSIGN_OR_RETURN(const Graph model,
                       BuildModel(golden.config, golden.batch, golden.config.seq_length));
  CompileOptions options;
  options.parallel.tp = tp;
  options.parallel.world_size = tp * dp;
  options.parallel.micro_batch_size = golden.batch / dp;
  options.parallel.global_batch_size = golden.batch;
  options.parallel.seq_length = golden.config.seq_length;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("cpu-threads"));
  return Compile(model, DimsOf(golden.config), options);
}

// The golden data inputs in a file; weights are the runtime's ones.
std::vector<InputFile> WriteInputs(const Golden& golden, const Plan& plan,
                                   const std::string& path) {
  std::vector<std::vector<int64_t>> indices;
  std::vector<std::vector<float>> reals;
  std::vector<SafetensorsView> views;
  std::vector<InputFile> files;
  const std::vector<DataInput> inputs = DataInputsOf(plan);
  indices.reserve(inputs.size());
  reals.reserve(inputs.size());
  for (const DataInput& input : inputs) {
    if (input.name == "weights") continue;
    std::vector<int64_t> shape;
    for (const Dim& dim : input.type.dims) shape.push_back(dim.size);
    shape[0] = golden.batch;
    const auto given = golden.inputs.find(input.name);
    if (input.type.dtype == DType::kI64) {
      const std::vector<int64_t>& text = input.name == "tokens" ? golden.tokens : golden.targets;
      indices.push_back(given == golden.inputs.end()
                            ? text
                            : std::vector<int64_t>(given->second.begin(), given->second.end()));
      views.push_back(ViewOf(input.name, shape, absl::MakeConstSpan(indices.back())));
    } else {
      reals.emplace_back(given->second.begin(), given->second.end());
      views.push_back(ViewOf(input.name, shape, absl::MakeConstSpan(reals.back())));
    }
    files.push_back({input.name, {path, input.name}});
  }
  EXPECT_EQ(WriteSafetensors(path, std::move(views)), absl::OkStatus());
  return files;
}

// Puts the golden parameters where the plan has them.
void SetParameters(const Golden& golden, const Plan& plan, Executor& executor) {
  for (const PlanClass& made : plan.classes) {
    for (const HeldBlock& held : made.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        const std::vector<double>& values =
            golden.parameters.at(NameForLayer(entry.name, held.layer));
        for (int64_t rank : RanksOfClass(plan, made.coordinate)) {
          const int64_t tile = held.param_base + entry.param_offset;
          ForEachRun(entry.type, entry.sharding, plan.mesh, rank,
                     [&](int64_t at, int64_t whole, int64_t count) {
                       const auto fill = [&](char* to) {
                         std::transform(values.begin() + whole, values.begin() + whole + count,
                                        reinterpret_cast<float*>(to),
                                        [](double value) { return static_cast<float>(value); });
                       };
                       executor.Put(rank, tile + at * int64_t{sizeof(float)},
                                    count * int64_t{sizeof(float)}, fill);
                     });
        }
      }
    }
  }
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

// What the golden loss is divided by: the tokens, the samples, or the targets that count.
double CountOf(const Golden& golden) {
  const auto targets = golden.inputs.find("targets");
  if (targets == golden.inputs.end()) return static_cast<double>(golden.weights.size());
  return static_cast<double>(std::count_if(targets->second.begin(), targets->second.end(),
                                           [](double t) { return t != kIgnoredTarget; }));
}

// Name of a golden file, tp, dp.
class GoldenRunTest : public testing::TestWithParam<std::tuple<absl::string_view, int, int>> {};

TEST_P(GoldenRunTest, LossAndGradientsOfAStep) {
  const auto& [name, tp, dp] = GetParam();
  const absl::StatusOr<Golden> golden = LoadGolden(name);
  ASSERT_TRUE(golden.ok()) << golden.status();
  const absl::StatusOr<Plan> plan = CompileGolden(*golden, tp, dp);
  ASSERT_TRUE(plan.ok()) << plan.status();

  const std::string path =
      absl::StrCat(testing::TempDir(), "/golden_", name, "_", getpid(), ".safetensors");
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.inputs = WriteInputs(*golden, *plan, path);
  options.lr.style = LrDecayStyle::kConstant;
  const auto trainer = Trainer::Create(*plan, options);
  unlink(path.c_str());
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  SetParameters(*golden, *plan, (*trainer)->executor());
  const absl::StatusOr<StepRecord> step = (*trainer)->Step();
  ASSERT_TRUE(step.ok()) << step.status();

  const double count = CountOf(*golden);
  EXPECT_NEAR(step->loss * count / golden->sum.loss, 1, 1e-6);
  const auto gradients = GatherTensors((*trainer)->executor(), TensorRole::kMeanGradient);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(gradients->size(), golden->sum.gradients.size());
  double largest = 0;
  for (const auto& [_, want] : golden->sum.gradients) largest = std::max(largest, Norm(want));
  for (const LogicalTensor& got : *gradients) {
    const std::vector<double>& want = golden->sum.gradients.at(got.name);
    ASSERT_EQ(got.values.size(), want.size()) << got.name;
    std::vector<double> difference(want.size());
    for (size_t i = 0; i < want.size(); ++i) difference[i] = got.values[i] * count - want[i];
    EXPECT_LE(Norm(difference), kTolerance * std::max(Norm(want), 1e-3 * largest)) << got.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenRunTest,
                         testing::Combine(testing::ValuesIn(kGoldenNames), testing::Values(1),
                                          testing::Values(1, 2)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_tp",
                                               std::get<1>(info.param), "_dp",
                                               std::get<2>(info.param));
                         });

}  // namespace
}  // namespace mgc
