// Hostile plans: whatever the readers accept gets an answer from the verifier, soon and in little
// memory.

#include <sys/resource.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/proto/plan.pb.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/fuzz/damaged_message.h"
#include "tests/fuzz/fuzz_cases.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

constexpr int kCases = 300;
// CPU seconds for one plan, also with sanitizers; few take more than 0.1 s.
constexpr double kLongestProof = 30;
constexpr int64_t kMostKiB = int64_t{3} << 20;
constexpr size_t kHeaderBytes = 40;

std::vector<Plan> TinyPlans() {
  std::vector<Plan> plans;
  for (const PlanCase& plan_case : TinyPlanCases()) plans.push_back(CompilePlanCase(plan_case));
  return plans;
}

// Fields that only people read.
const std::set<std::string>& ForPeople() {
  static const auto* const kFields =
      new std::set<std::string>{"origin",  "line",    "column",           "file", "files", "notes",
                                "options", "machine", "predicted_step_ns"};
  return *kFields;
}

int64_t PeakKiB() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// What came of the plans of a test.
struct Tally {
  int tried = 0;
  int read = 0;
  int proved = 0;
  std::map<std::string, int> labels;
  double longest = 0;  // CPU seconds of a proof
};

void Verify(const absl::StatusOr<Plan>& plan, Tally* tally) {
  ++tally->tried;
  if (!plan.ok()) return;
  ++tally->read;
  const double begin = CpuSeconds();
  const VerifyReport report = VerifyPlan(*plan);
  const double taken = CpuSeconds() - begin;
  tally->longest = std::max(tally->longest, taken);
  tally->proved += report.ok() ? 1 : 0;
  for (const Diagnostic& finding : report.findings) ++tally->labels[finding.label];
  EXPECT_TRUE(report.ok() == report.findings.ToString().empty());
  EXPECT_LT(taken, kLongestProof);
  EXPECT_LT(PeakKiB(), kMostKiB);
}

// Runs the cases and prints what came of the plans.
template <class Once>
void RunAndTell(const char* what, const Once& once) {
  Tally tally;
  RunFuzzCases(what, kCases, [&](std::mt19937* random) { once(random, &tally); });
  std::cout << tally.read << " of " << tally.tried << " plans read, " << tally.proved
            << " proved; the longest proof took " << tally.longest << " s, peak "
            << PeakKiB() / 1024 << " MiB\n";
  for (const auto& [label, count] : tally.labels)
    std::cout << "  " << label << " " << count << "\n";
  EXPECT_GT(tally.read, 5) << "the test only sees the readers";
}

// The message of a plan, and a plan file around a message.
class Messages {
 public:
  explicit Messages(const Plan& plan) : header_(SerializePlan(plan).substr(0, kHeaderBytes)) {
    message_.ParseFromString(SerializePlan(plan).substr(kHeaderBytes));
  }
  const wire::Plan& message() const { return message_; }

  std::string FileOf(const wire::Plan& message) const {
    const std::string body = message.SerializeAsString();
    std::string file = header_;
    Put(body.size(), 16, &file);
    Put(XXH3_64bits(body.data(), body.size()), 24, &file);
    return file + body;
  }

 private:
  static void Put(uint64_t value, size_t at, std::string* bytes) {
    for (size_t i = 0; i < 8; ++i) (*bytes)[at + i] = static_cast<char>(value >> (8 * i));
  }

  std::string header_;
  wire::Plan message_;
};

TEST(VerifyFuzzTest, DamagedMessages) {
  std::vector<Messages> sources;
  for (const Plan& plan : TinyPlans()) sources.emplace_back(plan);
  RunAndTell("damaged messages", [&](std::mt19937* random, Tally* tally) {
    const Messages& source = sources[Below(random, sources.size())];
    wire::Plan message = source.message();
    for (size_t n = 1 + Below(random, 3); n > 0; --n) Damage(&message, ForPeople(), random);
    Verify(DeserializePlan(source.FileOf(message), "fuzz"), tally);
  });
}

// Only the model, which everything is compared with.
TEST(VerifyFuzzTest, DamagedModels) {
  std::vector<Messages> sources;
  for (const Plan& plan : TinyPlans()) sources.emplace_back(plan);
  RunAndTell("damaged models", [&](std::mt19937* random, Tally* tally) {
    const Messages& source = sources[Below(random, sources.size())];
    wire::Plan message = source.message();
    for (size_t n = 1 + Below(random, 2); n > 0; --n)
      Damage(message.mutable_model(), ForPeople(), random);
    Verify(DeserializePlan(source.FileOf(message), "fuzz"), tally);
  });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Another number in place of one, or of all that are written alike after the same name.
void ChangeNumber(std::string* text, std::mt19937* random) {
  static const char* const kNumbers[] = {"0", "1", "2", "3", "7", "64", "4096", "1125899906842624"};
  size_t begin = Below(random, text->size());
  while (begin < text->size() && !IsDigit((*text)[begin])) ++begin;
  size_t end = begin;
  while (end < text->size() && IsDigit((*text)[end])) ++end;
  const std::string number = kNumbers[Below(random, std::size(kNumbers))];
  size_t name = begin;
  while (name > 0 && ((*text)[name - 1] == '=' || std::isalpha((*text)[name - 1]) != 0)) --name;
  if (name + 1 < begin && Below(random, 2) == 0) {
    const std::string old = text->substr(name, end - name);
    *text = absl::StrReplaceAll(*text, {{old, text->substr(name, begin - name) + number}});
  } else {
    text->replace(begin, end - begin, number);
  }
}

// Lines are exchanged, taken out or doubled, or a word stands where another did.
void ChangeLines(std::string* text, std::mt19937* random) {
  std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  const size_t at = Below(random, lines.size());
  const size_t near = std::min(lines.size() - 1, at + Below(random, 4));
  switch (Below(random, 4)) {
    case 0:
      std::swap(lines[at], lines[near]);
      break;
    case 1:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(near), lines[at]);
      break;
    default: {
      std::vector<std::string> words = absl::StrSplit(lines[at], ' ');
      const std::vector<std::string> others = absl::StrSplit(lines[near], ' ');
      words[Below(random, words.size())] = others[Below(random, others.size())];
      lines[at] = absl::StrJoin(words, " ");
    }
  }
  *text = absl::StrJoin(lines, "\n");
}

TEST(VerifyFuzzTest, DamagedTexts) {
  std::vector<std::string> sources;
  for (const Plan& plan : TinyPlans()) sources.push_back(PrintPlan(plan));
  RunAndTell("damaged texts", [&](std::mt19937* random, Tally* tally) {
    std::string text = sources[Below(random, sources.size())];
    if (Below(random, 2) == 0) {
      ChangeNumber(&text, random);
    } else {
      ChangeLines(&text, random);
    }
    Verify(ParsePlan(text, "fuzz"), tally);
  });
}

// A plan in which texts are replaced, everywhere.
struct OddCase {
  const char* name;
  const char* plan;  // of TinyPlanCases
  std::vector<std::pair<std::string, std::string>> replaced;
  const char* label;  // null: must only be answered
};

const char kAdded[] = "  %head.total: f64[] = total(%weights)";

// Nodes put in front of the last one, outputs behind.
OddCase WithNodes(const char* name, const std::string& nodes, const char* outputs,
                  const char* label) {
  return {
      name,
      "one_rank",
      {{kAdded, nodes + kAdded}, {"  loss \"loss\" =", absl::StrCat(outputs, "  loss \"loss\" =")}},
      label};
}

std::vector<OddCase> OddCases() {
  std::vector<OddCase> cases = {
      {"no_count", "one_rank", {{"  report \"count\" = %head.total\n", ""}}, "meaning_v1"},
      {"two_counts",
       "one_rank",
       {{"  report \"count\"", "  report \"count\" = %head.total\n  report \"count\""}},
       "meaning_v1"},
      {"count_is_a_tensor",
       "one_rank",
       {{"\"count\" = %head.total", "\"count\" = %weights"}},
       "meaning_v1"},
      {"loss_is_a_tensor",
       "one_rank",
       {{"loss \"loss\" = %head.weighted_sum", "loss \"loss\" = %head.sub"}},
       "meaning_v1"},
      {"no_loss",
       "one_rank",
       {{"  loss \"loss\" = %head.weighted_sum weight 1.0\n", ""}},
       "meaning_v1"},
      {"infinite_weight", "one_rank", {{"weight 1.0", "weight inf"}}, "meaning_v1"},
      {"huge_weight", "one_rank", {{"weight 1.0", "weight 1e308"}}, nullptr},
      {"training_graph", "one_rank", {{" logical layers=", " training layers="}}, "meaning_v1"},
      {"sharded_graph", "one_rank", {{" logical layers=", " sharded layers="}}, "meaning_v1"},
      {"local_graph", "one_rank", {{" logical layers=", " local layers="}}, "meaning_v1"},
      {"node_of_backward",
       "one_rank",
       {{"%head.total: f64[] = total(%weights)", "%head.total: f64[] = total(%weights) backward"}},
       nullptr},
      WithNodes("unused_scalar_input", "", "", nullptr),
      WithNodes("huge_constant",
                "  %z: f64[] = constant() {value=0.0}\n"
                "  %h: f64[33554432] = broadcast(%z) {dims=[0], names=\"_\", sizes=[33554432]}\n",
                "", nullptr),
      WithNodes("named_huge_constant",
                "  %z: f64[] = constant() {value=0.0}\n"
                "  %h: f64[a=33554432] = broadcast(%z) {dims=[0], names=\"a\", sizes=[33554432]}\n",
                "", nullptr),
      WithNodes("huge_slice",
                "  %z: f64[] = constant() {value=0.0}\n"
                "  %h: f64[a=33554432] = broadcast(%z) {dims=[0], names=\"a\", sizes=[33554432]}\n"
                "  %s: f64[a=3] = slice(%h) {begin=7, dim=0, end=10}\n",
                "", "meaning_v1"),
      WithNodes("odd_iota", "  %i: i64[n=1000003] = iota() {name=\"n\", size=1000003}\n", "",
                nullptr),
      WithNodes("lookup_out_of_range",
                "  %i: i64[n=50] = iota() {name=\"n\", size=50}\n"
                "  %e: f32[n=50,embed=64] = lookup(%embedding.position, %i)\n"
                "  %p: i64[1,n=50] = reshape(%i) {names=\"_ n\", sizes=[1, 50]}\n",
                "", nullptr),
      WithNodes("dims_of_one",
                "  %z: f64[] = constant() {value=0.0}\n"
                "  %h: f64[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] = broadcast(%z) "
                "{dims=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15], "
                "names=\"_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _\", "
                "sizes=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}\n",
                "", nullptr),
  };
  OddCase many = {"many_axes", "one_rank", {{"mesh @m []", "mesh @m ["}}, nullptr};
  for (char axis = 'a'; axis < 'a' + 16; ++axis) {
    absl::StrAppend(&many.replaced[0].second, axis == 'a' ? "" : ", ", std::string(1, axis), "=2");
  }
  many.replaced[0].second += "]";
  cases.push_back(std::move(many));
  // Several large products, none of which is large for itself, of sizes that attributes state and
  // that have no common divisor: there are no smaller ones.
  std::string nodes =
      "  %z: f64[] = constant() {value=0.5}\n"
      "  %h: f64[1000,1000] = broadcast(%z) {dims=[0, 1], names=\"_ _\", sizes=[1000, 1000]}\n"
      "  %s: f64[999,1000] = slice(%h) {begin=0, dim=0, end=999}\n"
      "  %t: f64[999,999] = slice(%s) {begin=0, dim=1, end=999}\n";
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&nodes, "  %p", i,
                    ": f64[999,999] = matmul(%t, %t) {spec=\"a b, b c -> a c\"}\n");
  }
  cases.push_back(WithNodes("large_in_sum", nodes, "", "meaning_v1"));
  return cases;
}

class OddPlanTest : public testing::TestWithParam<OddCase> {};

TEST_P(OddPlanTest, IsAnswered) {
  const OddCase& odd = GetParam();
  for (const PlanCase& plan_case : TinyPlanCases()) {
    if (plan_case.name != odd.plan) continue;
    const std::string text = PrintPlan(CompilePlanCase(plan_case));
    const std::string changed = absl::StrReplaceAll(text, odd.replaced);
    const absl::StatusOr<Plan> plan = ParsePlan(changed, "odd");
    ASSERT_TRUE(plan.ok()) << plan.status();
    const double begin = CpuSeconds();
    const VerifyReport report = VerifyPlan(*plan);
    EXPECT_LT(CpuSeconds() - begin, kLongestProof);
    EXPECT_LT(PeakKiB(), kMostKiB);
    if (odd.label != nullptr) {
      EXPECT_TRUE(report.findings.Has(odd.label)) << report.findings.ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OddPlanTest, testing::ValuesIn(OddCases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mgc
