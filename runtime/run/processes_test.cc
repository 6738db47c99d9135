// A process is an object: several executors, each for some ranks of a plan, train as one for all.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/arena_bytes.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/heap_processes.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr double kRate = 0.01;
constexpr int kSteps = 3;

absl::Status RunSteps(const TokenDataset& data, Executor& executor) {
  for (int step = 0; step < kSteps; ++step) {
    const NamedScalar scalars[] = {{"lr", kRate}};
    StepInput input;
    input.data = {&data, 0, int64_t{1} << 40};
    input.scalars = scalars;
    MGC_RETURN_IF_ERROR(executor.Run(input));
  }
  return absl::OkStatus();
}

struct Layout {
  int tp, dp, pp, processes, workers;
  bool mapped = false;  // arenas in memory that all have
};

class Processes : public testing::TestWithParam<Layout> {
 protected:
  Processes() : kernels_(ReferenceKernels()) {
    ChainOptions options;
    options.tp = GetParam().tp;
    options.dp = GetParam().dp;
    options.pp = GetParam().pp;
    plan_ = ChainPlan(options);
    data_ = *TokenDataset::FromBytes(std::string(1000, 'a'), options.seq, "data");
    options_.kernels = kernels_;
    options_.workers = GetParam().workers;
  }

  std::unique_ptr<Executor> Make(const ExecutorOptions& options) const {
    auto made = Executor::Create(plan_, options);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return nullptr;
    InitializeParameters(7, **made);
    return *std::move(made);
  }

  std::vector<KernelEntry> kernels_;
  Plan plan_;
  TokenDataset data_ = *TokenDataset::FromBytes("abcdefghij", 2, "none");
  ExecutorOptions options_;
};

TEST_P(Processes, TrainAsOne) {
  const auto alone = Make(options_);
  ASSERT_NE(alone, nullptr);
  ASSERT_TRUE(RunSteps(data_, *alone).ok());
  const auto body = [&](const ProcessPlace& place) {
    ExecutorOptions options = options_;
    options.process = place;
    options.shuffle = static_cast<uint64_t>(place.self);
    const auto executor = Make(options);
    ASSERT_NE(executor, nullptr);
    const absl::Status status = RunSteps(data_, *executor);
    ASSERT_TRUE(status.ok()) << status;
    // Of a chain the last stage alone reports.
    const auto loss = executor->Report("loss", false);
    EXPECT_TRUE(loss.ok() || executor->local().end < alone->local().end);
    if (loss.ok()) {
      EXPECT_EQ(*loss, *alone->Report("loss", false));
    }
    for (int64_t rank = executor->local().begin; rank < executor->local().end; ++rank) {
      const int64_t bytes = alone->MeasuredPeak(rank);
      EXPECT_EQ(executor->MeasuredPeak(rank), bytes);
      EXPECT_TRUE(ArenaBytes(*executor, rank, bytes) == ArenaBytes(*alone, rank, bytes)) << rank;
    }
  };
  InHeapProcesses(plan_.mesh.world_size(), GetParam().processes, GetParam().mapped, body);
}

INSTANTIATE_TEST_SUITE_P(All, Processes,
                         testing::Values(Layout{2, 1, 1, 2, 1}, Layout{1, 2, 1, 2, 1},
                                         Layout{1, 1, 2, 2, 1}, Layout{1, 1, 3, 3, 2},
                                         Layout{2, 2, 2, 2, 2}, Layout{2, 2, 2, 3, 1},
                                         Layout{2, 2, 2, 4, 1}, Layout{2, 2, 2, 8, 1},
                                         Layout{2, 2, 3, 5, 2}, Layout{1, 2, 1, 2, 1, true},
                                         Layout{2, 2, 2, 3, 1, true}, Layout{2, 2, 3, 5, 2, true}));

}  // namespace
}  // namespace mgc
