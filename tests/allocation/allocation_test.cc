// Every allocation of this binary passes through the operators below; none may happen while a step
// runs.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/train/trainer.h"
#include "tests/same_loss/train_plan.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};

void* Allocate(size_t size) {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace mgc {
namespace {

int64_t CountedDuring(Executor& executor, const StepInput& input) {
  allocations = 0;
  counting = true;
  const absl::Status status = executor.Run(input);
  counting = false;
  EXPECT_TRUE(status.ok()) << status;
  return allocations;
}

class Steps : public testing::TestWithParam<const char*> {};

TEST_P(Steps, AllocateNothing) {
  TrainCase c;
  c.preset = GetParam();
  c.dp = 2;
  c.parallel.tp = c.parallel.pp = 2;
  c.parallel.sequence_parallel = true;
  c.parallel.zero = 1;
  c.parallel.global_batch_size = 8;
  const absl::StatusOr<Plan> plan = CompileCase(c);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.workers = 3;
  options.trace_room = 1000;
  options.data = *TokenDataset::FromBytes(std::string(5000, 'x'), plan->seq_length, "data");
  options.lr.style = LrDecayStyle::kConstant;
  options.lr.max_lr = 1e-3;
  const auto trainer = Trainer::Create(*plan, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  StepInput input;
  input.data = {&*options.data, 0, 1 << 20};
  EXPECT_EQ(CountedDuring((*trainer)->executor(), input), 0) << "in the first step";
  EXPECT_EQ(CountedDuring((*trainer)->executor(), input), 0) << "in the second step";
  input.eval = true;
  EXPECT_EQ(CountedDuring((*trainer)->executor(), input), 0) << "in an evaluation";
}

INSTANTIATE_TEST_SUITE_P(Models, Steps, testing::Values("gpt2-tiny", "llama-tiny"),
                         [](const auto& info) { return std::string(info.param, 4); });

TEST(Counting, Works) {
  allocations = 0;
  counting = true;
  auto number = std::make_unique<int>(1);
  counting = false;
  EXPECT_EQ(allocations, *number);
}

}  // namespace
}  // namespace mgc
