// Damaged plans never crash, hang or fill the memory: whatever the readers accept passes its check
// and can be written again.

#include <xxhash.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_cases.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

constexpr int kTexts = 300;
constexpr int kMessages = 300;
constexpr int kFiles = 2000;
constexpr size_t kHeaderBytes = 40;

Plan SmallPlan() { return CompilePlanCase(TinyPlanCases()[5]); }  // pp2

// Replaces, removes, repeats or swaps a few pieces of `bytes`.
std::string Mutated(std::string bytes, std::mt19937* random) {
  const auto below = [random](size_t n) { return n == 0 ? 0 : (*random)() % n; };
  for (size_t n = 1 + below(4); n > 0; --n) {
    const size_t at = below(bytes.size());
    const size_t length = 1 + below(16);
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>((*random)());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 3:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      default:
        bytes.insert(at, absl::StrCat(uint64_t{(*random)()} >> below(32) << below(40)));
        break;
    }
  }
  return bytes;
}

void PutNumber(uint64_t value, size_t at, std::string* bytes) {
  for (size_t i = 0; i < 8; ++i) (*bytes)[at + i] = static_cast<char>(value >> (8 * i));
}

// `payload` behind a header that tells the truth, so that more than the checksum is met.
std::string WithHeader(const std::string& file, const std::string& payload) {
  std::string bytes = file.substr(0, kHeaderBytes);
  PutNumber(payload.size(), 16, &bytes);
  PutNumber(XXH3_64bits(payload.data(), payload.size()), 24, &bytes);
  return bytes + payload;
}

TEST(PlanFuzzTest, MutatedTexts) {
  const std::string text = PrintPlan(SmallPlan());
  int read = 0;
  RunFuzzCases("plan texts", kTexts, [&](std::mt19937* random) {
    const absl::StatusOr<Plan> plan = ParsePlan(Mutated(text, random), "fuzz.mgc");
    if (!plan.ok()) {
      ASSERT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(plan.status().message().substr(0, 9), "fuzz.mgc:") << plan.status();
      return;
    }
    ++read;
    ASSERT_TRUE(CheckPlan(*plan).ok());
    const std::string printed = PrintPlan(*plan);
    const absl::StatusOr<Plan> again = ParsePlan(printed, "again");
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_TRUE(PrintPlan(*again) == printed);
    ASSERT_TRUE(DeserializePlan(SerializePlan(*plan), "bytes").ok());
  });
  EXPECT_GT(read, 0) << "no mutation was harmless: the test only sees the lexer";
}

TEST(PlanFuzzTest, MutatedMessages) {
  const std::string file = SerializePlan(SmallPlan());
  ASSERT_TRUE(DeserializePlan(WithHeader(file, file.substr(kHeaderBytes)), "fuzz").ok());
  int messages = 0;
  int read = 0;
  RunFuzzCases("plan messages", kMessages, [&](std::mt19937* random) {
    const absl::StatusOr<Plan> plan =
        DeserializePlan(WithHeader(file, Mutated(file.substr(kHeaderBytes), random)), "fuzz");
    messages += plan.status().message().find("[file_c") == std::string::npos ? 1 : 0;
    if (!plan.ok()) return;
    ++read;
    ASSERT_TRUE(CheckPlan(*plan).ok());
    ASSERT_TRUE(DeserializePlan(SerializePlan(*plan), "bytes").ok());
  });
  EXPECT_GT(messages, 10) << "no mutation left a message: the test only sees its parser";
  EXPECT_GT(read, 0);
}

TEST(PlanFuzzTest, MutatedFiles) {
  const std::string bytes = SerializePlan(SmallPlan());
  RunFuzzCases("plan files", kFiles, [&](std::mt19937* random) {
    const std::string mutated = Mutated(bytes, random);
    EXPECT_EQ(DeserializePlan(mutated, "fuzz").ok(), mutated == bytes);
  });
}

}  // namespace
}  // namespace mgc
