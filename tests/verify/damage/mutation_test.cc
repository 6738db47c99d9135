// Every damaged plan is refused by name, or does the same down to the last bit.
//
// Seeds are fixed: they follow from the names of plan and kind. What the verifier accepts is run on
// threads, in shuffled orders, and compared with the plan it was made from.

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "graph/base/random.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/middle_chunk.h"
#include "tests/verify/damage/middle_class.h"
#include "tests/verify/damage/middle_layer.h"
#include "tests/verify/damage/mutation_corpus.h"
#include "tests/verify/damage/mutation_run.h"
#include "tests/verify/damage/mutations.h"
#include "tests/verify/damage/sized_test.h"

namespace mgc {
namespace {

// For each mutant of a kind and plan (`--cases`):
constexpr int kLeastOfAPlan = 60;
constexpr int kLeastReadable = 700;
constexpr int kLeastOfHoles = 350;  // by kinds that aim at a hole
// Whatever their number:
constexpr size_t kLeastKinds = 150;  // of all
constexpr size_t kLeastKindsOfAHole = 5;
constexpr size_t kLeastPlansOfAKind = 3;  // where it aims at a hole
constexpr int kTries = 4;                 // throws of the dice for a mutant
constexpr int kTriesOfTheMiddle = 24;     // most damage lies elsewhere
constexpr int kLeastOfTheMiddle = 40;     // of calls, of a class: few kinds damage them,
constexpr int kLeastOfAChunk = 12;        // of a chunk fewer,
constexpr int kRoundsOfTheMiddle = 8;     // those of calls often

// Kinds whose mutants may be the same plan in other words, and why.
const std::map<std::string, std::string>& Equivalents() {
  constexpr char kImplied[] = "what it waits for is over by then through other waits";
  constexpr char kOtherOrder[] = "another order that neither hangs nor changes what is computed";
  constexpr char kFreeRoom[] = "the room it moves to is free while it is in use";
  constexpr char kStages[] = "what one stage makes is its own, summed over stages or not";
  constexpr char kSameAgain[] = "what it reads is still there: it makes the same again";
  constexpr char kMoreRoom[] = "room that nothing uses";
  constexpr char kInPlace[] = "the op lets its result take that operand's place";
  constexpr char kTimesOne[] = "a product with the weight of the loss, 1, whose operand is whole";
  static const auto* const kReasons = new std::map<std::string, std::string>{
      {"collective doubled", kSameAgain},
      {"instruction doubled", kSameAgain},
      {"call doubled", kSameAgain},
      {"collectives exchanged", kOtherOrder},
      {"collective moved", kOtherOrder},
      {"actions exchanged", kOtherOrder},
      {"action moved", kOtherOrder},
      {"transfer before the one it follows", kOtherOrder},
      {"calls exchanged", kOtherOrder},
      {"result over an operand", kInPlace},
      {"instruction bypassed", kTimesOne},
      {"anchor moved on one end", kOtherOrder},
      {"collectives before a transfer off by one", kOtherOrder},
      {"action's wait dropped", kImplied},
      {"wait for a send dropped", kImplied},
      {"credit of an action dropped", kImplied},
      {"credit of a transfer dropped", kImplied},
      {"credit off by a micro-batch", kImplied},
      {"wait of a call dropped", "no collective of the plan runs beside later calls"},
      {"owed sum forgotten", kStages},
      {"owed sum invented", kStages},
      {"slot's offset off", kFreeRoom},
      {"slot laid over another", kFreeRoom},
      {"slots exchange places", kFreeRoom},
      {"slot behind another formal", kFreeRoom},
      {"binding off", kFreeRoom},
      {"address off", kFreeRoom},
      {"address of another action", kFreeRoom},
      {"boundary buffer used again early", kFreeRoom},
      {"frame used again early", kFreeRoom},
      {"ring of frames off", kFreeRoom},
      {"base of a layer off", kFreeRoom},
      {"slot's room changed", kMoreRoom},
      {"size of frames misstated", kMoreRoom},
      {"transient bytes misstated", kMoreRoom},
      {"bytes of globals misstated", kMoreRoom},
      {"zeroed range moved", "the rest is written before it is read"},
      {"zeroed range shortened", "the rest is written before it is read"},
      {"operand taken from another slot", "two slots name one value at one address"},
      {"result put into another slot", "two slots name one value at one address"},
      {"results exchanged", "evaluation reads neither: they are kept for a backward pass"},
      {"instruction made a copy", "multiplies by the loss' weight, which is 1"},
      {"instruction repeated on its result", "multiplies by the loss' weight, which is 1"},
      {"call for another layer", "nothing in it has the layer's name"},
      {"call of another segment", "one that is the same"},
      {"dropout's key changed", "evaluation drops nothing, with whatever key"},
      {"integer attribute off by one", "any decay but 0 says that there is decay"},
      {"scalar or report dropped", "another stage reports the same"},
      {"owner of a tied block moved", "the other stage keeps the mean gradient too"},
      {"mean of a tied parameter elsewhere", "another name of the same memory"},
      {"all_reduce over its operand", kInPlace},
      {"result of a collective across an operand", kFreeRoom},
      {"middle: transfer before the one it follows", kOtherOrder},
      {"middle: transfer anchored elsewhere", kOtherOrder},
      {"middle: transfer that needs nothing", kImplied},
      {"middle: transfer elsewhere", kFreeRoom},
      {"middle: action that waits for nothing", kImplied},
      {"middle: action before the one it follows", kOtherOrder},
      {"middle: action on another frame", kFreeRoom},
  };
  return *kReasons;
}

// --- What becomes of a mutant

int LeastOf(Where where) {
  if (where == Where::kAnywhere || where == Where::kMiddleLayer) return kLeastOfAPlan;
  return where == Where::kMiddleChunk ? kLeastOfAChunk : kLeastOfTheMiddle;
}

struct Tally {
  int tried = 0;
  int refused = 0;  // on reading
  int equivalent = 0;
  std::map<std::string, int> caught;  // by the first finding's label
};

struct Mutant {
  Plan plan;
  std::string what;
  std::string refused;  // label of what CheckPlan says
};

class Mutator {
 public:
  explicit Mutator(const MutationCase& named)
      : name_(named.name), plan_(*CompileCase(named.train)) {
    if (named.where == Where::kMiddleClass) {
      middle_class_.emplace(plan_);
    } else if (named.where == Where::kMiddleChunk) {
      middle_chunk_.emplace(plan_);
    } else if (named.where != Where::kAnywhere) {
      middle_.emplace(plan_, named.where == Where::kMiddleLayer);
      plan_ = middle_->plan();
    }
    bytes_.insert(SerializePlan(plan_));
  }
  const Plan& plan() const { return plan_; }

  // Nothing when the kind does not apply; never the same twice.
  absl::optional<Mutant> Make(const MutationKind& kind, int round) {
    Dice dice(StreamOf(absl::StrCat(name_, "/", kind.name, "/", round)));
    const bool anywhere =
        !middle_.has_value() && !middle_class_.has_value() && !middle_chunk_.has_value();
    const int most_tries = anywhere ? kTries : kTriesOfTheMiddle;
    for (int tries = 0; tries < most_tries; ++tries) {
      Mutant mutant{plan_, "", ""};
      if (!kind.damage(&mutant.plan, &dice, &mutant.what)) continue;
      if (middle_.has_value() && !middle_->IsAllThatDiffers(mutant.plan)) continue;
      if (middle_class_.has_value() && !middle_class_->IsAllThatDiffers(mutant.plan)) continue;
      if (middle_chunk_.has_value() && !middle_chunk_->IsAllThatDiffers(mutant.plan)) continue;
      const Diagnostics violations = FindPlanViolations(mutant.plan);
      if (!violations.empty()) {
        mutant.refused = violations[0].label;
        if (tries + 1 < most_tries) continue;  // those that can be read are sharper
        return mutant;
      }
      if (bytes_.insert(SerializePlan(mutant.plan)).second) return mutant;
    }
    return absl::nullopt;
  }

 private:
  std::string name_;
  Plan plan_;
  absl::optional<MiddleLayer> middle_;
  absl::optional<MiddleClass> middle_class_;
  absl::optional<MiddleChunk> middle_chunk_;
  std::set<std::string> bytes_;
};

class MutationTest : public testing::Test {
 public:
  MutationTest(MutationCase named, int rounds) : named_(std::move(named)), rounds_(rounds) {}

  void TestBody() override {
    Mutator mutator(named_);
    ASSERT_EQ(VerifyPlan(mutator.plan()).findings.ToString(), "");
    const bool few = named_.where == Where::kCallsOfTheMiddle;
    for (const MutationKind& kind : AllMutations()) {
      const int rounds = few ? kRoundsOfTheMiddle * rounds_ : rounds_;
      for (int round = 0; round < rounds; ++round) {
        const absl::optional<Mutant> mutant = mutator.Make(kind, round);
        if (mutant.has_value()) Judge(mutator, kind, *mutant);
        if (!mutant.has_value() && few) break;
      }
    }
    EXPECT_GE(Print(), LeastOf(named_.where) * rounds_);
  }

 private:
  // Runs what the verifier has accepted; says what differs.
  std::string RunAccepted(const Mutator& mutator, const Plan& mutant) {
    constexpr int kWorkers[] = {1, 2, 4};
    if (!original_.has_value()) {
      const absl::StatusOr<RunBits> bits = RunTwoSteps(mutator.plan(), 1, 1);
      if (!bits.ok()) return absl::StrCat("the plan itself: ", bits.status().ToString());
      original_ = *bits;
    }
    for (const int workers : kWorkers) {
      const absl::StatusOr<RunBits> bits =
          RunTwoSteps(mutant, workers, static_cast<uint64_t>(workers));
      if (!bits.ok()) return bits.status().ToString();
      std::string difference = Difference(*original_, *bits);
      if (!difference.empty()) return difference;
    }
    return "";
  }

  void Judge(const Mutator& mutator, const MutationKind& kind, const Mutant& mutant) {
    Tally& tally = tallies_[kind.name];
    ++tally.tried;
    if (!mutant.refused.empty()) {
      ++tally.refused;
      return;
    }
    const Diagnostics findings = VerifyPlan(mutant.plan).findings;
    if (!findings.empty()) {
      ++tally.caught[findings[0].label];
      return;
    }
    const std::string difference = RunAccepted(mutator, mutant.plan);
    if (difference.empty() && Equivalents().count(kind.name) > 0) {
      ++tally.equivalent;
      return;
    }
    ADD_FAILURE() << "accepted: " << kind.name << ": " << mutant.what << "; "
                  << (difference.empty() ? "it is equivalent, and its kind is not listed as such"
                                         : "it differs in " + difference);
  }

  int Print() const {
    int tried = 0;
    for (const auto& [name, tally] : tallies_) {
      std::string caught;
      for (const auto& [label, count] : tally.caught)
        absl::StrAppend(&caught, " ", label, "=", count);
      absl::PrintF("%-44s tried %2d, refused on reading %2d, equivalent %2d, caught%s\n", name,
                   tally.tried, tally.refused, tally.equivalent, caught);
      tried += tally.tried;
    }
    absl::PrintF("%d mutants of %d kinds\n", tried, tallies_.size());
    return tried;
  }

  const MutationCase named_;
  const int rounds_;
  std::map<std::string, Tally> tallies_;
  absl::optional<RunBits> original_;
};

// Without verifying: that all kinds are at work, and how many mutants can be read.
class KindsTest : public testing::Test {
 public:
  explicit KindsTest(int rounds) : rounds_(rounds) {}

  void TestBody() override {
    const std::vector<MutationKind> kinds = AllMutations();
    EXPECT_GE(kinds.size(), kLeastKinds);
    std::set<std::string> names;
    for (const MutationKind& kind : kinds) names.insert(kind.name);
    for (const MutationCase& named : MutationCorpus()) {
      if (named.where == Where::kAnywhere) Count(kinds, named);
    }
    EXPECT_EQ(names.size(), kinds.size()) << "two kinds have one name";
    EXPECT_EQ(names, at_work_);
    EXPECT_GT(mutants_, kLeastMutants);
    EXPECT_GE(readable_, kLeastReadable * rounds_);
    absl::PrintF("%d kinds, %d mutants, %d of them readable\n", kinds.size(), mutants_, readable_);
  }

 private:
  void Count(const std::vector<MutationKind>& kinds, const MutationCase& named) {
    Mutator mutator(named);
    for (const MutationKind& kind : kinds) {
      for (int round = 0; round < rounds_; ++round) {
        const absl::optional<Mutant> mutant = mutator.Make(kind, round);
        if (!mutant.has_value()) continue;
        ++mutants_;
        readable_ += mutant->refused.empty() ? 1 : 0;
        at_work_.insert(kind.name);
      }
    }
  }

  const int rounds_;
  std::set<std::string> at_work_;
  int mutants_ = 0;
  int readable_ = 0;
};

// Kinds that aim at what proofs once did not see: enough for each, on enough plans.
class HolesTest : public testing::Test {
 public:
  explicit HolesTest(int rounds) : rounds_(rounds) {}

  void TestBody() override {
    for (const MutationCase& named : MutationCorpus()) {
      if (named.where == Where::kAnywhere) Count(named);
    }
    EXPECT_EQ(plans_.size(), std::size(kHoles));
    size_t all_kinds = 0;
    for (const auto& [hole, kinds] : plans_) {
      const char* what = kHoles[static_cast<size_t>(hole - 1)];
      all_kinds += kinds.size();
      EXPECT_GE(kinds.size(), kLeastKindsOfAHole) << what;
      for (const auto& [kind, of_kind] : kinds) {
        EXPECT_GE(of_kind.size(), kLeastPlansOfAKind) << what << ": " << kind;
      }
    }
    EXPECT_GE(mutants_, kLeastOfHoles * rounds_);
    absl::PrintF("%d mutants of %d kinds that aim at holes\n", mutants_, all_kinds);
  }

 private:
  void Count(const MutationCase& named) {
    Mutator mutator(named);
    for (const MutationKind& kind : AllMutations()) {
      for (int round = 0; round < rounds_ && kind.hole > 0; ++round) {
        if (!mutator.Make(kind, round).has_value()) continue;
        ++mutants_;
        plans_[kind.hole][kind.name].insert(named.name);
      }
    }
  }

  const int rounds_;
  std::map<int, std::map<std::string, std::set<std::string>>> plans_;  // by hole and kind
  int mutants_ = 0;
};

// `rounds`: mutants of a kind and plan.
void RegisterTests(int rounds) {
  for (const MutationCase& named : MutationCorpus()) {
    RegisterSized<MutationTest>("EveryMutantIsRefusedOrEquivalent", named.name,
                                [named, rounds] { return new MutationTest(named, rounds); });
  }
  RegisterSized<KindsTest>("MutationKinds", "EveryKindDamagesSomething",
                           [rounds] { return new KindsTest(rounds); });
  RegisterSized<HolesTest>("MutationHoles", "EveryHoleHasItsKinds",
                           [rounds] { return new HolesTest(rounds); });
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterTests); }
