// Lack of memory and threads is an error with a message, never an abort. Each case runs in a
// process of its own, whose address space ends a little above what it already uses.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/run/workers.h"

namespace mgc {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

void LeaveRoomFor(int64_t bytes) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = static_cast<rlim_t>(pages * 4096 + bytes);
  const rlimit both = {limit, limit};
  if (setrlimit(RLIMIT_AS, &both) != 0) std::exit(9);
}

// Ends the process: 0 for ResourceExhausted, whose message goes to stderr.
[[noreturn]] void End(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

[[noreturn]] void StartWorkers() {
  LeaveRoomFor(40 * kMiB);  // a thread takes 8 MiB
  const Workers workers(64, 1);
  End(workers.status());
}

[[noreturn]] void CreateExecutor(const Plan& plan, int64_t room, int workers) {
  const std::vector<KernelEntry> kernels = ReferenceKernels();
  ExecutorOptions options;
  options.kernels = kernels;
  options.workers = workers;
  LeaveRoomFor(room);
  End(Executor::Create(plan, options).status());
}

TEST(ScarceDeathTest, TooFewThreads) {
  EXPECT_EXIT(StartWorkers(), testing::ExitedWithCode(0), "the system gives [2-9] of 64 threads");
}

TEST(ScarceDeathTest, NoThreadsForAnExecutor) {
  const Plan plan = ChainPlan({});
  EXPECT_EXIT(CreateExecutor(plan, 40 * kMiB, 64), testing::ExitedWithCode(0), "of 64 threads");
}

TEST(ScarceDeathTest, NoRoomForAnArena) {
  ChainOptions options;
  options.seq = 1 << 20;
  const Plan plan = ChainPlan(options);
  EXPECT_EXIT(CreateExecutor(plan, 20 * kMiB, 1), testing::ExitedWithCode(0),
              "the system has no .* MiB for a rank");
}

TEST(ScarceDeathTest, NoRoomForTheTables) {
  ChainOptions options;
  options.dp = 64;
  options.rows = 64;
  options.tp = 16;
  const Plan plan = ChainPlan(options);
  EXPECT_EXIT(CreateExecutor(plan, 0, 1), testing::ExitedWithCode(0),
              "no memory for the tables of 1024 ranks");
}

}  // namespace
}  // namespace mgc
