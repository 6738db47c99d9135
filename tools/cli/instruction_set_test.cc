#include "tools/cli/instruction_set.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

using Words = std::vector<std::string>;

TEST(InstructionSet, IsOneThatTheProcessorHas) {
  EXPECT_TRUE(CheckInstructionSet(absl::nullopt, SimdLevel::kBaseline).empty());
  for (SimdLevel level : AllSimdLevels()) {
    const std::string word(WordOf(level));
    EXPECT_EQ(InstructionSetOf(word, SimdLevel::kAvx2), level);
    EXPECT_EQ(CheckInstructionSet(word, SimdLevel::kAvx2).empty(), level <= SimdLevel::kAvx2);
  }
  EXPECT_EQ(InstructionSetOf(absl::nullopt, SimdLevel::kAvx512), SimdLevel::kAvx512);
  EXPECT_EQ(CheckInstructionSet("avx512-bf16", SimdLevel::kAvx2).ToStatus().message(),
            "--instruction-set is avx512-bf16, and this processor has AVX2 at best [I1]; nearest "
            "legal: baseline, avx2");
}

TEST(InstructionSet, IsNoOptionThatProcessesMustShare) {
  EXPECT_EQ(WithoutInstructionSet({"p.plan", "--instruction-set", "avx2", "--steps", "3"}),
            (Words{"p.plan", "--steps", "3"}));
  EXPECT_EQ(WithoutInstructionSet({"--instruction-set=avx2", "p.plan"}), (Words{"p.plan"}));
  EXPECT_EQ(WithoutInstructionSet({"p.plan", "--instruction-set"}), (Words{"p.plan"}));
}

}  // namespace
}  // namespace mgc
