#include "tools/benchmarks/kernel_cases.h"

#include <algorithm>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/load/kernel_table.h"

namespace mgc {
namespace {

TEST(KernelCasesTest, EveryKernelOfTheListHasACaseThatItServes) {
  const std::vector<KernelEntry> kernels = CpuKernels();
  const auto cases = KernelCases::Create(kernels, /*layers=*/2, /*seq=*/16);
  ASSERT_TRUE(cases.ok()) << cases.status();
  const Mesh mesh;
  KernelTable table(kernels, mesh, /*seed=*/1, /*width=*/2);
  std::set<std::string> served;
  for (const KernelCase& c : (*cases)->list()) {
    EXPECT_NE(table.Find(*c.segment, *c.instr, 0, 0), nullptr) << c.name;
    served.insert(c.instr->op->name);
  }
  EXPECT_TRUE(table.Refused().ok()) << table.Refused();
  for (const KernelEntry& entry : kernels) {
    EXPECT_EQ(served.count(entry.op), FindOp(entry.op)->collective ? 0 : 1) << entry.op;
  }
}

TEST(KernelCasesTest, StepsSayHowOftenTheyCall) {
  const auto cases = KernelCases::Create(CpuKernels(), /*layers=*/3, /*seq=*/16);
  ASSERT_TRUE(cases.ok()) << cases.status();
  const auto calls = [&](const std::string& name) {
    int64_t sum = 0;
    for (const KernelCase& c : (*cases)->list()) sum += c.name == name ? c.calls : 0;
    return sum;
  };
  EXPECT_EQ(calls("layer_norm/f32[4,16,768],f32[768],f32[768]/gpt2"), 7);
  EXPECT_EQ(calls("swiglu/f32[4,16,2816],f32[4,16,2816]/llama"), 3);
  const auto& list = (*cases)->list();
  EXPECT_TRUE(std::any_of(list.begin(), list.end(), [](const KernelCase& c) {
    return c.calls == 0 && c.segment->slots[0].type.NumElements() > 1 << 19;
  })) << "an example is grown";
}

}  // namespace
}  // namespace mgc
