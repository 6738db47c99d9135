#include "graph/plan/step_walk.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/plan/step_tables.h"
#include "graph/plan/testing/odd_plan.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes down what a walk shows.
class Recorder : public StepVisitor {
 public:
  Recorder(const Plan& plan, bool wants_instrs) : plan_(plan), wants_instrs_(wants_instrs) {}

  bool WantsInstrs() const override { return wants_instrs_; }
  void BeginStep(int c, int step) override { Add(c, absl::StrCat("step ", step)); }
  void Run(const InstrSite& site) override {
    Add(site.class_index, site.instr->op == nullptr ? "load" : site.instr->op->name);
  }
  void Start(const InstrSite& site) override { Add(site.class_index, "start"); }
  void Collective(absl::Span<const InstrSite> sites) override {
    for (const InstrSite& site : sites) {
      Add(site.class_index, absl::StrCat(site.segment->name, " of ", sites.size()));
      EXPECT_EQ(site.instr->kind, InstrKind::kStart);
      EXPECT_EQ(site.segment, &plan_.segments[static_cast<size_t>(site.call->segment)]);
    }
  }
  void Wait(const InstrSite& site) override { Add(site.class_index, "wait"); }
  void Transfer(int from, const mgc::Transfer& send, int to,
                const mgc::Transfer& receive) override {
    Add(from, NameOf(send.ref, plan_.classes[static_cast<size_t>(from)].chunks));
    Add(to, NameOf(receive.ref, plan_.classes[static_cast<size_t>(to)].chunks));
  }
  void EndAction(int c, const Action& action) override {
    Add(c, NameOf(action.ref, plan_.classes[static_cast<size_t>(c)].chunks));
  }

  // What class `c` has done, in order.
  std::vector<std::string> events[2];

 private:
  void Add(int c, std::string event) { events[c].push_back(std::move(event)); }

  const Plan& plan_;
  const bool wants_instrs_;
};

std::string WalkOf(const TextEdits& edits) {
  const Plan plan = EditedSample(edits);
  StepVisitor nothing;
  return WalkSteps(plan, false, 2, &nothing);
}

TEST(StepWalkTest, ShowsWhatEachClassDoes) {
  const Plan plan = EditedSample({});
  Recorder recorder(plan, true);
  ASSERT_EQ(WalkSteps(plan, true, 1, &recorder), "");
  EXPECT_THAT(recorder.events[0],
              ElementsAre("step 0", "load", "gelu", "start", "layer.forward of 1", "wait", "mul",
                          "0F0", "load", "gelu", "start", "0SEND_F0", "layer.forward of 1", "wait",
                          "mul", "0F1", "load", "gelu", "start", "0SEND_F1", "layer.forward of 1",
                          "wait", "mul", "0F2", "start", "0SEND_F2", "update of 2", "wait", "0U0"));
  EXPECT_THAT(recorder.events[1],
              ElementsAre("step 0", "1RECV_F0", "1RECV_F1", "gelu", "1F0", "gelu", "1F1",
                          "1RECV_F2", "gelu", "1F2", "start", "update of 2", "wait", "1U0"));
}

TEST(StepWalkTest, WithoutInstructionsTheRestIsTheSame) {
  const Plan plan = EditedSample({});
  Recorder all(plan, true);
  Recorder few(plan, false);
  ASSERT_EQ(WalkSteps(plan, false, 2, &all), "");
  ASSERT_EQ(WalkSteps(plan, false, 2, &few), "");
  for (int c : {0, 1}) {
    std::vector<std::string> left;
    for (const std::string& event : all.events[c]) {
      const bool ran = event == "load" || event == "gelu" || event == "mul" || event == "add" ||
                       event == "accumulate";
      if (!ran) left.push_back(event);
    }
    EXPECT_EQ(few.events[c], left);
    EXPECT_EQ(std::count(left.begin(), left.end(), "step 1"), 1);
  }
}

TEST(StepWalkTest, NoStepsAreOverAtOnce) {
  const Plan plan = EditedSample({});
  Recorder recorder(plan, true);
  EXPECT_EQ(WalkSteps(plan, false, 0, &recorder), "");
  EXPECT_THAT(recorder.events[0], ElementsAre());
}

TEST(StepWalkTest, SaysWhatStoppedQueuesWaitFor) {
  // Class 0 receives before it sends what its receive follows from.
  const std::string why = WalkOf({{"      0SEND_F0 at 768 bytes 16 peer 1 behind 0 of 0F1\n", ""},
                                  {"      0SEND_F2 at 768",
                                   "      0SEND_F0 at 768 bytes 16 peer 1 behind 0 of 0F1\n"
                                   "      0SEND_F2 at 768"}});
  EXPECT_EQ(why,
            "class 0 computation at 0B0 waits for 0RECV_B0; that communication stands at 0SEND_F1\n"
            "class 0 communication at 0SEND_F1 waits for class 1's 1RECV_F1; that communication "
            "stands at 1RECV_F0\n"
            "class 1 computation at 1F0 waits for 1RECV_F0; that communication stands at 1RECV_F0\n"
            "class 1 communication at 1RECV_F0 waits for class 0's 0SEND_F0; that communication "
            "stands at 0SEND_F1");
}

TEST(StepWalkTest, AnchorsCountCollectives) {
  // Behind one collective of 0F1 the first output leaves after 0F1 has come so far: as before.
  EXPECT_EQ(WalkOf({{"peer 1 behind 0 of 0F1", "peer 1 behind 1 of 0F1"}}), "");
  // Behind the update's, which comes after everything.
  EXPECT_THAT(
      WalkOf({{"peer 1 behind 0 of 0F1", "peer 1 behind 1 of 0U0"}}),
      HasSubstr("class 0 communication at all_reduce 0 of layer.forward layer 0 in 0F2 waits "
                "for all_reduce 0 of layer.forward layer 0 in 0F2; that computation "
                "stands at 0B0"));
}

TEST(StepWalkTest, CollectivesMeetInOneOrder) {
  const Plan odd = OddPlan();
  StepVisitor nothing;
  EXPECT_THAT(WalkSteps(odd, false, 2, &nothing),
              HasSubstr("class 1 computation at 1F0 waits for 1RECV_F0"));
  // Class 1 reduces another type.
  EXPECT_THAT(
      WalkOf(
          {{"segment @layer.update",
            "segment @other transient 0 workspace 0 collectives 1 (transient, globals) {\n"
            "  slot %0 \"n\": f32[] @m[]+pp in globals at 0 bytes 8\n"
            "  slot %1 \"n.sum\": f32[] @m[] in globals at 64 bytes 8\n"
            "  start 0 %1 = all_reduce(%0) update\n  wait 0 update\n}\n"
            "segment @layer.update"},
           {"update @update running 0 (transient=320", "update @other running 0 (transient=320"}}),
      HasSubstr("class 0 communication at all_reduce 0 of update in 0U0 waits for class 1's its "
                "all_reduce over pp"));
}

}  // namespace
}  // namespace mgc
