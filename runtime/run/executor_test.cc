#include "runtime/run/executor.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/run/testing/arena_bytes.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr double kRate = 0.05;

// Owns what an executor refers to.
struct Chain {
  Plan plan;
  std::vector<KernelEntry> kernels = ReferenceKernels();
  TokenDataset data;
  std::unique_ptr<Executor> executor;

  Chain(const ChainOptions& options, int workers, absl::optional<uint64_t> shuffle = {},
        int64_t trace_steps = 1000)
      : plan(ChainPlan(options)),
        data(*TokenDataset::FromBytes(std::string(1000, 'a'), options.seq, "data")) {
    ExecutorOptions executor_options;
    executor_options.kernels = kernels;
    executor_options.workers = workers;
    executor_options.shuffle = shuffle;
    executor_options.trace_room = 4096;
    executor_options.trace_steps = trace_steps;
    absl::StatusOr<std::unique_ptr<Executor>> made = Executor::Create(plan, executor_options);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return;
    executor = *std::move(made);
    InitializeParameters(7, *executor);
  }

  absl::Status Step(bool eval = false, int64_t end_sample = int64_t{1} << 40) {
    const NamedScalar scalars[] = {{"lr", kRate}};
    StepInput input;
    input.eval = eval;
    input.data = {&data, 0, end_sample};
    input.scalars = scalars;
    return executor->Run(input);
  }

  // All parameters, one after the other in the order of stages.
  std::vector<float> Params() const {
    std::vector<float> all;
    const auto tensors = GatherTensors(*executor, TensorRole::kParam);
    for (const LogicalTensor& t : *tensors) {
      all.insert(all.end(), t.values.begin(), t.values.end());
    }
    return all;
  }
};

// The chain in double: the loss and the stepped parameters.
double ChainStep(int64_t rows, int64_t seq, int stages, std::vector<double>* w) {
  double loss = 0;
  std::vector<double> next = *w;
  for (int64_t i = 0; i < seq; ++i) {
    double y = 1;
    for (int s = 0; s < stages; ++s) y *= (*w)[s * seq + i];
    loss += 0.5 * y * y * rows;
    for (int s = 0; s < stages; ++s) {
      double others = 1;
      for (int t = 0; t < stages; ++t) others *= t == s ? 1 : (*w)[t * seq + i];
      next[s * seq + i] -= kRate * rows * y * others;
    }
  }
  *w = next;
  return loss;
}

struct Sizes {
  int tp, dp, pp, workers;
};

class ExecutorSizes : public testing::TestWithParam<Sizes> {};

TEST_P(ExecutorSizes, TrainsTheChainAsInDouble) {
  const Sizes sizes = GetParam();
  ChainOptions options;
  options.tp = sizes.tp;
  options.dp = sizes.dp;
  options.pp = sizes.pp;
  Chain chain(options, sizes.workers);
  ASSERT_NE(chain.executor, nullptr);
  const std::vector<float> start = chain.Params();
  ASSERT_EQ(start.size(), static_cast<size_t>(options.pp * options.seq));
  std::vector<double> w(start.begin(), start.end());
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(chain.Step().ok());
    const double want =
        ChainStep(options.rows * options.micro_batches, options.seq, options.pp, &w);
    EXPECT_NEAR(*chain.executor->Report("loss", false), want, 1e-5 * std::abs(want));
    const std::vector<float> got = chain.Params();
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(got[i], w[i], 2e-6) << i;
    for (size_t i = 0; i < w.size(); ++i) w[i] = got[i];
  }
  for (int64_t rank = 0; rank < chain.plan.mesh.world_size(); ++rank) {
    const int coordinate = static_cast<int>(rank / (int64_t{options.tp} * options.dp));
    EXPECT_EQ(chain.executor->MeasuredPeak(rank), chain.plan.classes[coordinate].memory.peak)
        << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExecutorSizes,
                         testing::Values(Sizes{1, 1, 1, 1}, Sizes{1, 1, 1, 3}, Sizes{2, 1, 1, 2},
                                         Sizes{1, 2, 1, 2}, Sizes{1, 1, 2, 2}, Sizes{1, 1, 3, 1},
                                         Sizes{2, 1, 2, 2}, Sizes{2, 2, 2, 3}, Sizes{2, 2, 3, 4}));

// Replicas must agree bit for bit, whatever the workers do.
TEST(ExecutorTest, TimingChangesNoBit) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  ChainOptions options;
  options.tp = options.dp = options.pp = 2;
  options.micro_batches = 7;
  Chain plain(options, 1);
  ASSERT_NE(plain.executor, nullptr);
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(plain.Step().ok());
  for (int round = 0; round < 6; ++round) {
    Chain shuffled(options, 1 + round % 4, seed + round);
    ASSERT_NE(shuffled.executor, nullptr);
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(shuffled.Step().ok());
    for (int64_t rank = 0; rank < 8; ++rank) {
      const int64_t bytes = plain.plan.classes[rank / 4].memory.peak;
      EXPECT_TRUE(ArenaBytes(*plain.executor, rank, bytes) ==
                  ArenaBytes(*shuffled.executor, rank, bytes))
          << "round " << round << ", rank " << rank;
    }
  }
}

TEST(ExecutorTest, EvaluationCountsOnlyRealRows) {
  ChainOptions options;
  options.dp = options.pp = 2;
  options.micro_batches = 3;
  Chain chain(options, 2);
  ASSERT_NE(chain.executor, nullptr);
  const std::vector<float> before = chain.Params();
  std::vector<double> w(before.begin(), before.end());
  const double want = ChainStep(5, options.seq, options.pp, &w);
  ASSERT_TRUE(chain.Step(true, 5).ok());
  EXPECT_NEAR(*chain.executor->Report("loss", true), want, 1e-5 * want);
  EXPECT_EQ(*chain.executor->Report("tokens", true), 5.0 * options.seq);
  EXPECT_EQ(chain.Params(), before);
}

TEST(ExecutorTest, GradientsAreGatheredBeforeTheUpdate) {
  ChainOptions options;
  options.dp = 2;
  Chain chain(options, 2);
  ASSERT_NE(chain.executor, nullptr);
  const std::vector<float> w = chain.Params();
  ASSERT_TRUE(chain.Step().ok());
  const auto gradients = GatherTensors(*chain.executor, TensorRole::kMeanGradient);
  ASSERT_TRUE(gradients.ok());
  ASSERT_EQ(gradients->size(), 1u);
  EXPECT_EQ((*gradients)[0].name, "layers.0.w");
  for (int64_t i = 0; i < options.seq; ++i) {
    EXPECT_NEAR((*gradients)[0].values[i], 16.0 * w[i], 1e-5);
  }
}

TEST(ExecutorTest, TraceNamesWhatRan) {
  ChainOptions options;
  options.tp = options.pp = 2;
  Chain chain(options, 2);
  ASSERT_NE(chain.executor, nullptr);
  ASSERT_TRUE(chain.Step().ok());
  std::string names;
  for (const TraceEvent& event : chain.executor->Trace(3)) {
    EXPECT_LE(event.begin_ns, event.end_ns);
    absl::StrAppend(&names, event.name, ";");
    if (event.name == "1F2") {
      EXPECT_EQ(event.micro_batch, 2);
      EXPECT_EQ(event.calls, &chain.plan.classes[1].chunks[0].forward);
    } else if (event.name == "1U0") {
      EXPECT_EQ(event.micro_batch, -1);
    } else if (event.name == "1RECV_F2") {
      EXPECT_EQ(event.micro_batch, 2);
      EXPECT_GT(event.bytes, 0);
    } else if (event.kind == TraceKind::kCollective) {
      EXPECT_GT(event.bytes, 0);
    } else if (event.kind == TraceKind::kInstr) {
      EXPECT_EQ(event.bytes, -1);
    }
  }
  EXPECT_EQ(chain.executor->dropped_trace_records(), 0);
  for (const char* name : {"1F0;", "1B3;", "1U0;", "all-reduce tp;", "1RECV_F2;", "1SEND_B2;",
                           "forward[0] mul layer 1;"}) {
    EXPECT_TRUE(absl::StrContains(names, name)) << name << " in " << names;
  }
}

TEST(ExecutorTest, TraceEndsBehindItsSteps) {
  ChainOptions options;
  options.tp = options.pp = 2;
  size_t of_a_step = 0;
  for (const int64_t steps : {1, 2}) {
    Chain chain(options, 2, {}, steps);
    ASSERT_NE(chain.executor, nullptr);
    for (int step = 0; step < 4; ++step) ASSERT_TRUE(chain.Step().ok());
    const size_t events = chain.executor->Trace(3).size();
    if (steps == 1) of_a_step = events;
    EXPECT_GT(events, 0);
    EXPECT_EQ(events, of_a_step * static_cast<size_t>(steps));
    EXPECT_EQ(chain.executor->dropped_trace_records(), 0);
  }
}

// Runs a step of a chain of two stages whose second one receives micro-batch 1 before 0.
absl::Status StepWithSwappedReceives(int tp) {
  ChainOptions options;
  options.pp = 2;
  options.tp = tp;
  const std::vector<KernelEntry> kernels = ReferenceKernels();
  Plan plan = ChainPlan(options);
  std::swap(plan.classes[1].train.transfers[0], plan.classes[1].train.transfers[1]);
  ExecutorOptions executor_options;
  executor_options.kernels = kernels;
  executor_options.workers = 3;
  auto executor = Executor::Create(plan, executor_options);
  if (!executor.ok()) return executor.status();
  const auto data = TokenDataset::FromBytes(std::string(100, 'a'), options.seq, "data");
  StepInput input;
  input.data = {&*data, 0, 100};
  absl::Status status = (*executor)->Run(input);
  EXPECT_EQ((*executor)->Run(input), status);  // the executor is of no more use
  return status;
}

TEST(ExecutorTest, ADeadlockBetweenRanksIsNamed) {
  const absl::Status status = StepWithSwappedReceives(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string text(status.message());
  for (const char* part :
       {"rank 0: 0B0 before its first instruction waits for 0RECV_B0; communication stands at "
        "0SEND_F0, waiting for rank 1's communication",
        "rank 1: 1F0 before its first instruction waits for 1RECV_F0; communication stands at "
        "1RECV_F1, waiting for rank 0's communication",
        "cycle of waits: rank 0 0SEND_F0 -> rank 1 1RECV_F1 -> rank 0 0SEND_F0"}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << " in\n" << text;
  }
}

TEST(ExecutorTest, ADeadlockWithinARankIsNamed) {
  const absl::Status status = StepWithSwappedReceives(2);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(
      status.message(), "cycle of waits: rank 2 all-reduce tp -> rank 2 1F0 -> rank 2 all-reduce"))
      << status.message();
}

TEST(ExecutorTest, AllMissingKernelsAreListed) {
  ChainOptions options;
  Plan plan = ChainPlan(options);
  std::vector<KernelEntry> kernels;
  for (const KernelEntry& entry : ReferenceKernels()) {
    if (std::string(entry.op) != "mul" && std::string(entry.op) != "sub") kernels.push_back(entry);
  }
  ExecutorOptions executor_options;
  executor_options.kernels = kernels;
  const auto executor = Executor::Create(plan, executor_options);
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(
      absl::StrContains(executor.status().message(), "mul(f32[batch=4,seq=6], f32[seq=6])"));
  EXPECT_TRUE(absl::StrContains(executor.status().message(), "sub(f32[seq=6], f32[seq=6])"));
}

// Asks for `kPerThread` bytes of scratch for each thread, and does nothing.
template <int64_t kPerThread>
absl::StatusOr<std::unique_ptr<Kernel>> MakeGreedy(const KernelSpec&) {
  class Greedy : public Kernel {
   public:
    int64_t workspace_bytes(int width) const override { return width * kPerThread; }
    absl::Status Run(const KernelRun&, Parallel&) const override { return absl::OkStatus(); }
  };
  return std::make_unique<Greedy>();
}

// Another plan's steps may need more than the first one's.
TEST(ExecutorTest, ArenasAreThoseOfTheLargestPlan) {
  const Plan plan = ChainPlan({});
  const int64_t peak = plan.classes[0].memory.peak;
  Plan larger = plan;
  larger.classes[0].memory.peak += 4096;
  const std::vector<KernelEntry> kernels = ReferenceKernels();
  ExecutorOptions options;
  options.kernels = kernels;
  options.others = {&larger};
  const auto executor = Executor::Create(plan, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  (*executor)->Put(0, peak, 4096, [](char* to) { std::fill_n(to, 4096, 'x'); });
  std::string read(4096, ' ');
  (*executor)->Get(0, peak, 4096, &read[0]);
  EXPECT_EQ(read, std::string(4096, 'x'));
  larger.classes[0].memory.peak = int64_t{1} << 50;
  EXPECT_TRUE(absl::IsResourceExhausted(Executor::Create(plan, options).status()));
}

// GPUs have memory of their own, and say at start what they lack.
TEST(ExecutorTest, ThisMachinesMemoryHoldsThisMachinesRanksOnly) {
  Plan plan = ChainPlan({});
  plan.classes[0].memory.peak = int64_t{1} << 50;
  const RankRange all = {0, plan.mesh.world_size()};
  EXPECT_EQ(CheckFits(plan, KernelHost::kCpu, {&all, 1}, 1).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CheckFits(plan, KernelHost::kGpu, {&all, 1}, 1), absl::OkStatus());
}

TEST(ExecutorTest, KernelsGetTheScratchThatTheirOpsAllowAndNoMore) {
  const Plan plan = ChainPlan({});
  std::vector<KernelEntry> kernels = ReferenceKernels();
  const auto replace = [&kernels](absl::string_view op, KernelFactory make) {
    for (KernelEntry& entry : kernels) {
      if (entry.op == op) entry.make = make;
    }
  };
  ExecutorOptions options;
  options.workers = 3;
  // Eight bytes: a partial sum.
  replace("sum_squares", MakeGreedy<8>);
  options.kernels = kernels;
  const auto executor = Executor::Create(plan, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ((*executor)->workspace_bytes(), 3 * 8);

  // All that is wrong with the kernels is told at once.
  replace("sum_squares", MakeGreedy<9>);
  replace("mul", MakeGreedy<1>);
  options.kernels = absl::MakeConstSpan(kernels);
  const absl::Status status = Executor::Create(plan, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      "sum_squares(f32[batch=4,seq=6]) -> (f64[]): segment `loss`: the kernel asks for 27 bytes of "
      "workspace, `sum_squares` allows 8 for each of 3 threads"))
      << status;
  EXPECT_TRUE(absl::StrContains(
      status.message(), "asks for 3 bytes of workspace, `mul` allows 0 for each of 3 threads"))
      << status;
}

}  // namespace
}  // namespace mgc
