// Steps whose updates are held: what the step before left stays until they are let go, and nothing
// else changes.

#include "runtime/run/update_gate.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/device_deferred.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

struct Sizes {
  int tp, dp, pp, workers;
  bool deferred;
};

// Owns what an executor refers to.
struct Chain {
  Plan plan;
  std::vector<KernelEntry> kernels = ReferenceKernels();
  TokenDataset data;
  std::vector<RankProgress> progress;
  std::unique_ptr<Executor> executor;

  explicit Chain(const Sizes& sizes)
      : plan(ChainPlan({sizes.tp, sizes.dp, sizes.pp})),
        data(*TokenDataset::FromBytes(std::string(1000, 'a'), 6, "data")),
        progress(static_cast<size_t>(plan.mesh.world_size())) {
    ExecutorOptions options;
    options.kernels = kernels;
    options.workers = sizes.workers;
    options.progress = absl::MakeSpan(progress);
    if (sizes.deferred) options.device = DeferredDevices({});
    executor = *Executor::Create(plan, options);
    InitializeParameters(7, *executor);
  }

  absl::Status Step(bool eval = false) {
    const NamedScalar scalars[] = {{"lr", 0.05}};
    StepInput input;
    input.eval = eval;
    input.data = {&data, 0, int64_t{1} << 40};
    input.scalars = scalars;
    return executor->Run(input);
  }

  std::vector<float> Params() const {
    std::vector<float> all;
    const auto tensors = HeldTensors(plan, TensorRole::kParam);
    for (const HeldTensor& tensor : *tensors) {
      ForEachRunHere(*executor, tensor, [&](int64_t, absl::Span<float> values) {
        all.insert(all.end(), values.begin(), values.end());
      });
    }
    return all;
  }

  // Until every rank stands before its update.
  void AwaitHeld() const {
    for (const RankProgress& rank : progress) {
      while (rank.activity.get() != RankActivity::kHeld) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
  }
};

class HeldUpdates : public testing::TestWithParam<Sizes> {};

TEST_P(HeldUpdates, WhatTheyWriteStaysUntilTheyAreLetGo) {
  Chain held(GetParam());
  Chain free(GetParam());
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> before = held.Params();
    held.executor->HoldUpdates();
    absl::Status status;
    std::thread steps([&] { status = held.Step(); });
    held.AwaitHeld();
    EXPECT_EQ(held.Params(), before);
    const int64_t came = held.progress[0].since_ns.get();
    held.executor->KeepHolding();
    EXPECT_GE(held.progress[0].since_ns.get(), came);
    held.executor->LetUpdates();
    steps.join();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_GT(held.executor->held_ns(), 0);
    ASSERT_TRUE(free.Step().ok());
    EXPECT_EQ(held.Params(), free.Params());
    EXPECT_NE(held.Params(), before);
  }
  EXPECT_EQ(free.executor->held_ns(), 0);
}

TEST_P(HeldUpdates, EvaluationsGoOn) {
  Chain chain(GetParam());
  chain.executor->HoldUpdates();
  EXPECT_TRUE(chain.Step(true).ok());
  chain.executor->LetUpdates();
  EXPECT_TRUE(chain.Step().ok());
  EXPECT_EQ(chain.executor->held_ns(), 0) << "nobody came while they were held";
}

// The step of a rank that fails ends all the same.
TEST_P(HeldUpdates, FailuresEndTheStep) {
  Chain chain(GetParam());
  for (KernelEntry& entry : chain.kernels) {
    if (absl::string_view(entry.op) != "total") continue;
    entry.make = [](const KernelSpec&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      struct Failing : Kernel {
        absl::Status Run(const KernelRun&, Parallel&) const override {
          return absl::UnavailableError("the device is gone");
        }
      };
      return std::make_unique<Failing>();
    };
  }
  ExecutorOptions options;
  options.kernels = chain.kernels;
  options.workers = GetParam().workers;
  chain.executor = *Executor::Create(chain.plan, options);
  chain.executor->HoldUpdates();
  EXPECT_EQ(chain.Step().code(), absl::StatusCode::kUnavailable);
  chain.executor->LetUpdates();
}

INSTANTIATE_TEST_SUITE_P(All, HeldUpdates,
                         testing::Values(Sizes{1, 1, 1, 1, false}, Sizes{2, 2, 2, 1, false},
                                         Sizes{2, 2, 2, 3, false}, Sizes{2, 1, 2, 2, true}));

}  // namespace
}  // namespace mgc
