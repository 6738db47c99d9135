// A rank that waits lends its worker to whatever runs, though there is a worker for every rank. The
// facts are counted, not timed: what is split waits, range by range, until another thread has taken
// part; without one it would wait for ever, and the limit ends the test.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/arena_bytes.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/comes.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

// Of one test: how often a watched kernel has run, and whether another thread has helped in it.
// Kernels are made by plain functions, which reach nothing else.
std::atomic<int> runs{0};
std::atomic<bool> kernel_was_helped{false};

// A call that goes on until two threads have taken part in it, for some seconds at most: the other
// one may begin something else before it has nothing to do.
void NeedHelp(Parallel& parallel) {
  constexpr int64_t kRanges = 100000;
  parallel.ForChunks(kRanges, 1, [](int64_t /*begin*/, int64_t /*end*/, int slot) {
    if (slot > 0) kernel_was_helped = true;
    if (!kernel_was_helped) std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
}

// `inner`, whose first run of all needs help where `kNeedsHelp`.
template <bool kNeedsHelp>
class WatchedKernel : public Kernel {
 public:
  explicit WatchedKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}

  absl::Status Run(const KernelRun& run, Parallel& parallel) const override {
    const bool first = runs == 0;
    if (first && kNeedsHelp) NeedHelp(parallel);
    absl::Status status = inner_->Run(run, parallel);
    ++runs;
    return status;
  }

 private:
  const std::unique_ptr<Kernel> inner_;
};

KernelFactory FactoryOf(absl::string_view op) {
  for (const KernelEntry& entry : ReferenceKernels()) {
    if (entry.op == op) return entry.make;
  }
  return nullptr;
}

constexpr char kMul[] = "mul";
constexpr char kReduceSum[] = "reduce_sum";

template <const char* kOp, bool kNeedsHelp>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWatched(const KernelSpec& spec) {
  auto inner = FactoryOf(kOp)(spec);
  if (!inner.ok()) return inner.status();
  return std::make_unique<WatchedKernel<kNeedsHelp>>(*std::move(inner));
}

template <const char* kOp, bool kNeedsHelp>
std::vector<KernelEntry> KernelsWatching() {
  runs = 0;
  kernel_was_helped = false;
  std::vector<KernelEntry> kernels = ReferenceKernels();
  for (KernelEntry& entry : kernels) {
    if (absl::string_view(entry.op) == kOp) entry.make = MakeWatched<kOp, kNeedsHelp>;
  }
  return kernels;
}

// A step of a chain.
struct Chain {
  Plan plan;
  std::vector<KernelEntry> kernels;
  TokenDataset data;
  std::unique_ptr<Executor> executor;

  Chain(const ChainOptions& options, std::vector<KernelEntry> entries, int workers)
      : plan(ChainPlan(options)),
        kernels(std::move(entries)),
        data(*TokenDataset::FromBytes(std::string(static_cast<size_t>(4 * options.seq), 'a'),
                                      options.seq, "data")) {
    ExecutorOptions executor_options;
    executor_options.kernels = kernels;
    executor_options.workers = workers;
    executor = *Executor::Create(plan, executor_options);
    InitializeParameters(7, *executor);
  }

  absl::Status Step() {
    const NamedScalar scalars[] = {{"lr", 0.05}};
    StepInput input;
    input.data = {&data, 0, int64_t{1} << 40};
    input.scalars = scalars;
    return executor->Run(input);
  }
};

// While the first stage makes its first product the second has nothing to do.
TEST(IdleTest, AKernelIsSharedWithARankThatWaitsForItsInput) {
  ChainOptions options;
  options.pp = 2;
  Chain chain(options, KernelsWatching<kMul, true>(), 2);
  ASSERT_TRUE(chain.Step().ok());
  EXPECT_TRUE(kernel_was_helped);
}

// Watches the one call that is split once every rank has made its gradient.
struct SumWatch {
  const Executor& executor;
  int looks = 0;  // of the caller
  std::atomic<int> helper_looks{0};

  void Look(int slot) {
    if (runs < executor.plan().mesh.world_size()) return;
    if (slot > 0) {
      ++helper_looks;
      return;
    }
    if (looks++ == 0) {
      EXPECT_TRUE(Comes([&] { return executor.workers().hands() > 1; }));
    } else {
      EXPECT_TRUE(Comes([&] { return helped(); }));
    }
  }
  // A helper that looks for its second part has run one.
  bool helped() const { return helper_looks > 1; }
};

// Both ranks wait for the sum of the gradient, which one of the two workers would make alone.
TEST(IdleTest, ACollectiveIsSharedWithTheRanksThatWaitForIt) {
  ChainOptions options;
  options.dp = 2;
  options.micro_batches = 1;
  options.rows = 2;
  options.seq = 300000;  // so that the gradient has 1.2 MB
  Chain alone(options, ReferenceKernels(), 1);
  ASSERT_TRUE(alone.Step().ok());

  Chain chain(options, KernelsWatching<kReduceSum, false>(), 2);
  SumWatch watch{*chain.executor};
  chain.executor->workers().Watch([&](int slot) { watch.Look(slot); });
  ASSERT_TRUE(chain.Step().ok());
  EXPECT_TRUE(watch.helped());
  const int64_t bytes = chain.plan.classes[0].memory.peak;
  for (int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(ArenaBytes(*alone.executor, rank, bytes) ==
                ArenaBytes(*chain.executor, rank, bytes));
  }
}

}  // namespace
}  // namespace mgc
