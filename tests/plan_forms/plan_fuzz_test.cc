// Damaged plans never crash, hang or fill the memory: whatever the readers accept passes its check
// and can be written again.

#include <xxhash.h>

#include <chrono>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/plan_check.h"
#include "graph/proto/plan_wire.h"
#include "graph/text/plan_text.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

// Other cases: --gtest_random_seed=N.
uint32_t Seed() {
  return 20240607 + static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed());
}

constexpr std::chrono::seconds kTimeLimit(4);  // of one test
constexpr size_t kHeaderBytes = 40;

class Budget {
 public:
  bool Left() const { return std::chrono::steady_clock::now() < end_; }

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kTimeLimit;
};

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
  std::mt19937 random(Seed());
  const Budget budget;
  int read = 0;
  int n = 0;
  for (; budget.Left(); ++n) {
    SCOPED_TRACE(absl::StrCat("seed ", Seed(), " case ", n));
    const absl::StatusOr<Plan> plan = ParsePlan(Mutated(text, &random), "fuzz.mgc");
    if (!plan.ok()) {
      ASSERT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(plan.status().message().substr(0, 9), "fuzz.mgc:") << plan.status();
      continue;
    }
    ++read;
    ASSERT_TRUE(CheckPlan(*plan).ok());
    const std::string printed = PrintPlan(*plan);
    const absl::StatusOr<Plan> again = ParsePlan(printed, "again");
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_TRUE(PrintPlan(*again) == printed);
    ASSERT_TRUE(DeserializePlan(SerializePlan(*plan), "bytes").ok());
  }
  RecordProperty("cases", n);
  EXPECT_GT(n, 20);
  EXPECT_GT(read, 0) << "no mutation was harmless: the test only sees the lexer";
}

TEST(PlanFuzzTest, MutatedMessages) {
  const std::string file = SerializePlan(SmallPlan());
  ASSERT_TRUE(DeserializePlan(WithHeader(file, file.substr(kHeaderBytes)), "fuzz").ok());
  std::mt19937 random(Seed());
  const Budget budget;
  int messages = 0;
  int read = 0;
  for (int n = 0; budget.Left(); ++n) {
    SCOPED_TRACE(absl::StrCat("seed ", Seed(), " case ", n));
    const absl::StatusOr<Plan> plan =
        DeserializePlan(WithHeader(file, Mutated(file.substr(kHeaderBytes), &random)), "fuzz");
    messages += plan.status().message().find("[file_c") == std::string::npos ? 1 : 0;
    if (!plan.ok()) continue;
    ++read;
    ASSERT_TRUE(CheckPlan(*plan).ok());
    ASSERT_TRUE(DeserializePlan(SerializePlan(*plan), "bytes").ok());
  }
  EXPECT_GT(messages, 10) << "no mutation left a message: the test only sees its parser";
  EXPECT_GT(read, 0);
}

TEST(PlanFuzzTest, MutatedFiles) {
  const std::string bytes = SerializePlan(SmallPlan());
  std::mt19937 random(Seed());
  for (int n = 0; n < 2000; ++n) {
    SCOPED_TRACE(absl::StrCat("seed ", Seed(), " case ", n));
    const std::string mutated = Mutated(bytes, &random);
    EXPECT_EQ(DeserializePlan(mutated, "fuzz").ok(), mutated == bytes);
  }
}

}  // namespace
}  // namespace mgc
