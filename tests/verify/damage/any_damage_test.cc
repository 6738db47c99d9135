// A plan in text form, changed anywhere: any integer, any line, any operand, any attribute. What a
// reader and the proof accept is run beside the plan it was made from, and must leave the same
// bits.
//
// Cases are fixed: case i of a plan follows from the plan's name and i, which a failure names.

#include <cctype>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "graph/base/random.h"
#include "graph/plan/text/plan_text.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/mutation_run.h"
#include "tests/verify/damage/mutation_sites.h"
#include "tests/verify/damage/sized_test.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;
// Changes a text and says where; false when the dice found nothing.
using Change = bool (*)(Lines* lines, Dice* dice, std::string* what);

// The half-open range of a word that begins at `begin` and whose characters `fits` accepts.
template <class Fits>
size_t EndOf(const std::string& line, size_t begin, const Fits& fits) {
  while (begin < line.size() && fits(line[begin])) ++begin;
  return begin;
}
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' ||
         c == '+' || c == '"';
}

// Replaces a piece of a line by what it had not been.
bool Put(std::string* line, size_t begin, size_t end, const std::string& by, std::string* what) {
  const std::string old = line->substr(begin, end - begin);
  if (old == by) return false;
  absl::StrAppend(what, ", ", old, " to ", by);
  line->replace(begin, end - begin, by);
  return true;
}

bool IntegerChanged(Lines* lines, Dice* dice, std::string* what) {
  std::string& line = *dice->Pick(lines);
  std::vector<size_t> begins;
  for (size_t i = 0; i < line.size(); ++i) {
    if (IsDigit(line[i]) && (i == 0 || !IsDigit(line[i - 1]))) begins.push_back(i);
  }
  const size_t* begin = dice->Pick(&begins);
  if (begin == nullptr) return false;
  const size_t end = EndOf(line, *begin, IsDigit);
  int64_t number = 0;
  if (end - *begin > 15 || !absl::SimpleAtoi(line.substr(*begin, end - *begin), &number)) {
    return false;
  }
  const int64_t others[] = {number + 1, number - 1, number * 2, number + 64, number / 2, 0};
  const int64_t other = others[dice->Below(6)];
  return other >= 0 && Put(&line, *begin, end, absl::StrCat(other), what);
}

bool LinesChanged(Lines* lines, Dice* dice, std::string* what) {
  const size_t at = dice->Below(lines->size());
  const size_t near = at + 1 + dice->Below(4);
  if (near >= lines->size()) return false;
  const auto position = lines->begin() + static_cast<int64_t>(at);
  switch (dice->Below(3)) {
    case 0:
      if ((*lines)[at] == (*lines)[near]) return false;
      absl::StrAppend(what, ", exchanged with ", near + 1);
      std::swap((*lines)[at], (*lines)[near]);
      return true;
    case 1:
      absl::StrAppend(what, ", taken out ", at + 1, ": ", *position);
      lines->erase(position);
      return true;
    default:
      absl::StrAppend(what, ", doubled ", at + 1, ": ", *position);
      lines->insert(position, std::string(*position));
      return true;
  }
}

// An operand of an instruction or of a node of the model becomes another.
bool OperandChanged(Lines* lines, Dice* dice, std::string* what) {
  std::string& line = *dice->Pick(lines);
  std::vector<size_t> begins;
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '%' && IsWord(line[i + 1])) begins.push_back(i);
  }
  const size_t* begin = dice->Pick(&begins);
  if (begin == nullptr) return false;
  const std::string& from = (*lines)[dice->Below(lines->size())];
  const size_t other = from.find('%');
  if (other == std::string::npos) return false;
  return Put(&line, *begin, EndOf(line, *begin + 1, IsWord),
             from.substr(other, EndOf(from, other + 1, IsWord) - other), what);
}

bool AttributeChanged(Lines* lines, Dice* dice, std::string* what) {
  std::string& line = *dice->Pick(lines);
  const size_t open = line.find('{');
  if (open == std::string::npos) return false;
  std::vector<size_t> begins;
  for (size_t i = open; i + 1 < line.size(); ++i) {
    if (line[i] == '=') begins.push_back(i + 1);
  }
  const size_t* begin = dice->Pick(&begins);
  if (begin == nullptr) return false;
  const size_t end = EndOf(line, *begin, IsWord);
  const char* const values[] = {"0",     "1",    "0.5",   "2.0", "-1.0",
                                "1e-05", "1e30", "\"x\"", "[0]", "2305843009213693952.0"};
  return Put(&line, *begin, end, values[dice->Below(10)], what);
}

struct Tally {
  int read = 0;     // accepted by the reader
  int refused = 0;  // by the proof
  int equal = 0;
};

class AnyDamageTest : public testing::Test {
 public:
  AnyDamageTest(TrainCase train, int cases) : train_(std::move(train)), cases_(cases) {}

  void TestBody() override {
    const absl::StatusOr<Plan> plan = CompileCase(train_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    lines_ = absl::StrSplit(PrintPlan(*plan), '\n');
    const absl::StatusOr<RunBits> bits = RunTwoSteps(*plan, 1, 1);
    ASSERT_TRUE(bits.ok()) << bits.status();
    original_ = *bits;
    for (int number = 0; number < cases_; ++number) Try(number);
    absl::PrintF("%s: %d cases, %d read, %d refused by the proof, %d of the same bits\n",
                 NameOf(train_), cases_, tally_.read, tally_.refused, tally_.equal);
    EXPECT_LE(tally_.equal, cases_ / 2);
  }

 private:
  void Try(int number) {
    Dice dice(StreamOf(absl::StrCat(NameOf(train_), "/any/", number)));
    constexpr Change kChanges[] = {IntegerChanged, LinesChanged, OperandChanged, AttributeChanged};
    Lines lines = lines_;
    std::string what = absl::StrCat("case ", number);
    while (!kChanges[dice.Below(4)](&lines, &dice, &what)) {
    }
    const absl::StatusOr<Plan> plan = ParsePlan(absl::StrJoin(lines, "\n"), "damaged");
    if (!plan.ok()) return;
    ++tally_.read;
    if (!VerifyPlan(*plan).ok()) {
      ++tally_.refused;
      return;
    }
    const absl::StatusOr<RunBits> bits = RunTwoSteps(*plan, 2, static_cast<uint64_t>(number));
    ASSERT_TRUE(bits.ok()) << what << ": proved, and then " << bits.status();
    EXPECT_EQ(Difference(*original_, *bits), "") << what << ": proved, and differs";
    ++tally_.equal;
  }

  const TrainCase train_;
  const int cases_;
  Lines lines_;
  absl::optional<RunBits> original_;
  Tally tally_;
};

TrainCase Case(const char* preset, int64_t tp, int64_t pp, int64_t dp, int64_t micro_batches) {
  TrainCase c;
  c.preset = preset;
  c.dp = dp;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.micro_batch_size = 1;
  c.parallel.global_batch_size = dp * micro_batches;
  c.stretched = preset[0] == 'l';
  return c;
}

std::vector<TrainCase> Cases() {
  std::vector<TrainCase> cases = {Case("llama-tiny", 1, 1, 1, 2), Case("gpt2-tiny", 2, 1, 1, 2),
                                  Case("llama-tiny", 1, 1, 2, 2), Case("gpt2-tiny", 1, 2, 1, 5),
                                  Case("llama-tiny", 2, 2, 1, 4)};
  cases[2].parallel.zero = 1;
  cases[4].parallel.sequence_parallel = true;
  return cases;
}

// `cases`: of each plan.
void RegisterTests(int cases) {
  for (const TrainCase& train : Cases()) {
    RegisterSized<AnyDamageTest>("AnyDamageIsRefusedOrChangesNoBit", NameOf(train),
                                 [train, cases] { return new AnyDamageTest(train, cases); });
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterTests); }
