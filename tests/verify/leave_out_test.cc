// What is left out of compiled plans before they are executed, and what makes a layer stay.

#include "graph/verify/shrink/leave_out.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/llama_case.h"

namespace mgc {
namespace {

const Plan& EightLayers() {
  static const Plan* const plan = new Plan(*CompileCase(CaseOf(8, 1)));
  return *plan;
}

// The layers that a class still runs forward, `0 1 link 7`.
std::string ForwardOf(const Plan& few, size_t rank_class) {
  std::string text;
  for (const Chunk& chunk : few.classes[rank_class].chunks) {
    for (const Call& call : chunk.forward) {
      const std::string& name = few.segments[static_cast<size_t>(call.segment)].name;
      if (name.find("layer") != 0) continue;
      absl::StrAppend(&text, text.empty() ? "" : " ",
                      name == "layer.forward.link" ? "link" : absl::StrCat(call.layer));
    }
  }
  return text;
}

std::string ForwardAfter(const std::function<void(Plan*)>& change) {
  Plan plan = EightLayers();
  change(&plan);
  return ForwardOf(WithoutRepeatedLayers(plan), 0);
}

Call* CallOf(std::vector<Call>* calls, int layer) {
  for (Call& call : *calls) {
    if (call.layer == layer) return &call;
  }
  return nullptr;
}

size_t FormalOf(const Plan& plan, const Call& call, Region region) {
  const std::vector<Formal>& formals = plan.segments[static_cast<size_t>(call.segment)].formals;
  size_t formal = 0;
  while (formals[formal].region != region) ++formal;
  return formal;
}

TEST(LeaveOutTest, TheFirstTwoAndTheLastOfEightStay) {
  const Plan few = WithoutRepeatedLayers(EightLayers());
  EXPECT_EQ(ForwardOf(few, 0), "0 1 link 7");
  EXPECT_EQ(few.model.FindValue("layers.4.norm1"), kNone);
  EXPECT_NE(few.model.FindValue("layers.7.norm1"), kNone);
  std::set<int> held;
  for (const HeldBlock& block : few.classes[0].blocks) held.insert(block.layer);
  EXPECT_EQ(held, (std::set<int>{-1, 0, 1, 7, 8}));
  for (const Call& call : few.classes[0].update) EXPECT_TRUE(call.layer < 2 || call.layer > 6);
}

TEST(LeaveOutTest, OfEachChunk) {
  const absl::StatusOr<Plan> plan = CompileCase(CaseOf(10, 2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Plan few = WithoutRepeatedLayers(*plan);
  EXPECT_EQ(ForwardOf(few, 0), "0 1 link 4");
  EXPECT_EQ(ForwardOf(few, 1), "5 6 link 9");
  EXPECT_EQ(VerifyPlan(*plan).findings.ToString(), "");
}

// Whatever a call of a middle layer is bound to otherwise keeps that layer, as the formals of its
// list are gone through one by one.
TEST(LeaveOutTest, ALayerThatIsBoundOtherwiseStays) {
  const auto lists = [](Plan* plan) {
    PlanClass& c = plan->classes[0];
    return std::vector<std::vector<Call>*>{&c.chunks[0].forward, &c.chunks[0].backward,
                                           &c.chunks[0].last_backward, &c.eval_chunks[0].forward,
                                           &c.update};
  };
  Plan copy = EightLayers();
  int tried = 0;
  for (size_t list = 0; list < lists(&copy).size(); ++list) {
    const size_t formals = CallOf(lists(&copy)[list], 4)->bindings.size();
    for (size_t formal = 0; formal < formals; ++formal) {
      const std::string left = ForwardAfter(
          [&](Plan* plan) { CallOf(lists(plan)[list], 4)->bindings[formal].offset += 64; });
      EXPECT_NE(left, "0 1 link 7") << "list " << list << ", formal " << formal;
      ++tried;
    }
  }
  EXPECT_GE(tried, 20);
}

TEST(LeaveOutTest, ALayerOfAnotherSegmentStays) {
  EXPECT_EQ(ForwardAfter([](Plan* plan) {
              Call* call = CallOf(&plan->classes[0].chunks[0].backward, 4);
              plan->segments.push_back(plan->segments[static_cast<size_t>(call->segment)]);
              call->segment = static_cast<int>(plan->segments.size()) - 1;
            }),
            "0 1 link 3 4 5 6 7");
}

TEST(LeaveOutTest, ALayerWithoutAnUpdateStays) {
  EXPECT_EQ(ForwardAfter([](Plan* plan) {
              std::vector<Call>& update = plan->classes[0].update;
              update.erase(update.begin() + (CallOf(&update, 4) - update.data()));
            }),
            "0 1 link 3 4 5 6 7");
}

TEST(LeaveOutTest, ALayerThatItsClassDoesNotOwnStays) {
  EXPECT_EQ(ForwardAfter([](Plan* plan) {
              for (HeldBlock& held : plan->classes[0].blocks) {
                if (held.layer == 4) held.owner = false;
              }
            }),
            "0 1 link 3 4 5 6 7");
}

// Two layers on the frame of one: each is bound soundly, the distances differ.
TEST(LeaveOutTest, FramesThatDoNotFollowEachOtherStay) {
  const std::string left = ForwardAfter([](Plan* plan) {
    for (auto* calls :
         {&plan->classes[0].chunks[0].forward, &plan->classes[0].chunks[0].backward}) {
      Call* call = CallOf(calls, 4);
      const size_t formal = FormalOf(*plan, *call, Region::kFrame);
      call->bindings[formal] = CallOf(calls, 3)->bindings[formal];
    }
  });
  EXPECT_NE(left, "0 1 link 7");
}

// What is done to a class.
using Damage = std::function<void(PlanClass*)>;

// Moves one binding after another of the calls of a chunk, and of the update, that are wanted.
void ForEachBinding(const PlanClass& sound, size_t chunk,
                    const std::function<bool(const Call&)>& is_wanted,
                    const std::function<void(const Damage&)>& judge) {
  const auto lists = [chunk](PlanClass* c) {
    Chunk& train = c->chunks[chunk];
    return std::vector<std::vector<Call>*>{&train.prepare,
                                           &train.forward,
                                           &train.backward,
                                           &train.last_backward,
                                           &c->eval_chunks[chunk].forward,
                                           &c->update};
  };
  PlanClass copy = sound;
  int tried = 0;
  for (size_t list = 0; list < lists(&copy).size(); ++list) {
    const std::vector<Call>& calls = *lists(&copy)[list];
    for (size_t call = 0; call < calls.size(); ++call) {
      if (!is_wanted(calls[call])) continue;
      for (size_t formal = 0; formal < calls[call].bindings.size(); ++formal) {
        SCOPED_TRACE(absl::StrCat("list ", list, ", call ", call, ", formal ", formal));
        judge([&](PlanClass* c) { (*lists(c)[list])[call].bindings[formal].offset += 64; });
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 20);
}

// --- Equal chunks of a rank

// Two ranks of five chunks, two layers each.
const Plan& TenStages() {
  static const Plan* const plan = [] {
    TrainCase c = CaseOf(20, 2);
    c.parallel.schedule = ScheduleKind::kInterleaved;
    c.parallel.vp = 5;
    return new Plan(*CompileCase(c));
  }();
  return *plan;
}

std::string RankAfter(const std::function<void(PlanClass*)>& change) {
  Plan plan = TenStages();
  change(&plan.classes[1]);
  return ForwardOf(WithoutRepeatedLayers(plan), 1);
}

// Rank 1 has layers 2, 3; 6, 7; ...; 18, 19. Its last chunk has the head.
TEST(LeaveOutTest, OfEqualChunksTheFirstTwoAndTheLastKeepTheirLayers) {
  const Plan few = WithoutRepeatedLayers(TenStages());
  EXPECT_EQ(ForwardOf(few, 0), "0 1 4 5 8 9 link 16 17");
  EXPECT_EQ(ForwardOf(few, 1), "2 3 6 7 link 14 15 18 19");
  EXPECT_EQ(few.model.FindValue("layers.10.norm1"), kNone);
  EXPECT_NE(few.model.FindValue("layers.14.norm1"), kNone);
  EXPECT_EQ(few.classes[1].train.compute.size(), TenStages().classes[1].train.compute.size());
  EXPECT_EQ(VerifyPlan(TenStages()).findings.ToString(), "");
}

TEST(LeaveOutTest, AChunkThatIsBoundOtherwiseStays) {
  const auto lists = [](PlanClass* c) {
    return std::vector<std::vector<Call>*>{&c->chunks[2].prepare,      &c->chunks[2].forward,
                                           &c->chunks[2].backward,     &c->chunks[2].last_backward,
                                           &c->eval_chunks[2].forward, &c->update};
  };
  Plan copy = TenStages();
  int tried = 0;
  for (size_t list = 0; list < lists(&copy.classes[1]).size(); ++list) {
    const std::vector<Call>& calls = *lists(&copy.classes[1])[list];
    for (size_t call = 0; call < calls.size(); ++call) {
      if (calls[call].layer != 10 && calls[call].layer != 11) continue;
      for (size_t formal = 0; formal < calls[call].bindings.size(); ++formal) {
        const std::string left =
            RankAfter([&](PlanClass* c) { (*lists(c)[list])[call].bindings[formal].offset += 64; });
        EXPECT_THAT(left, testing::HasSubstr("10 11"))
            << "list " << list << ", call " << call << ", formal " << formal;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 20);
}

// Copies of the last chunk on those of one that is passed through: each alone is sound.
TEST(LeaveOutTest, CopiesOfTwoLayersInOnePlaceAreSeen) {
  TrainCase c = CaseOf(20, 2);
  c.parallel.schedule = ScheduleKind::kInterleaved;
  c.parallel.vp = 5;
  c.parallel.zero = 0;
  c.parallel.compute_type = DType::kBF16;
  Plan plan = *CompileCase(c);
  ASSERT_EQ(VerifyPlan(plan).findings.ToString(), "");
  PlanClass& rank = plan.classes[1];
  ASSERT_EQ(ForwardOf(WithoutRepeatedLayers(plan), 1), "2 3 6 7 link 14 15 18 19");
  const auto copies_of = [&](int layer) -> int64_t& {
    Call* call = CallOf(&rank.chunks[2].forward, layer);
    if (call == nullptr) call = CallOf(&rank.chunks[4].forward, layer);
    return call->bindings[FormalOf(plan, *call, Region::kCopies)].offset;
  };
  const int64_t behind = copies_of(18) - copies_of(10);
  int moved = 0;
  for (auto* chunks : {&rank.chunks, &rank.eval_chunks}) {
    for (std::vector<Call>* list : ListsOf(&(*chunks)[4])) {
      for (Call& call : *list) {
        if (call.layer != 18 && call.layer != 19) continue;
        const std::vector<Formal>& formals =
            plan.segments[static_cast<size_t>(call.segment)].formals;
        for (size_t f = 0; f < formals.size(); ++f) {
          if (formals[f].region != Region::kCopies || !formals[f].block.empty()) continue;
          call.bindings[f].offset -= behind;
          ++moved;
        }
      }
    }
  }
  ASSERT_GT(moved, 4);
  EXPECT_THAT(VerifyPlan(plan).findings.ToString(),
              testing::AllOf(testing::HasSubstr("[memory_v1]"),
                             testing::HasSubstr("working copies of layer")));
}

// Readers of plans allow it; whoever proves one has to say something of it.
TEST(LeaveOutTest, ClassesMayHaveFewerChunksThanTheFirst) {
  Plan plan = TenStages();
  plan.classes[1].chunks.resize(2);
  plan.classes[1].eval_chunks.resize(2);
  EXPECT_EQ(ForwardOf(WithoutRepeatedLayers(plan), 1), "2 3 6 7");
}

TEST(LeaveOutTest, AChunkWithOtherBlocksOrCallsStays) {
  const auto stays = [](const std::function<void(PlanClass*)>& change) {
    return RankAfter(change).find("10 11") != std::string::npos;
  };
  const auto block = [](PlanClass* c) -> HeldBlock& {
    return *std::find_if(c->blocks.begin(), c->blocks.end(),
                         [](const HeldBlock& held) { return held.layer == 10; });
  };
  EXPECT_FALSE(stays([](PlanClass* /*c*/) {}));
  EXPECT_TRUE(stays([&](PlanClass* c) { block(c).state_base += 64; }));
  EXPECT_TRUE(stays([&](PlanClass* c) { block(c).owner = false; }));
  EXPECT_TRUE(stays([](PlanClass* c) {
    c->update.erase(c->update.begin() + (CallOf(&c->update, 10) - c->update.data()));
  }));
  EXPECT_TRUE(stays([](PlanClass* c) { c->chunks[2].backward.pop_back(); }));
  EXPECT_TRUE(stays([](PlanClass* c) { c->chunks[2].frame_bytes += 64; }));
}

// --- Equal classes

const Plan& SixStages() {
  static const Plan* const plan = new Plan(*CompileCase(CaseOf(6, 6)));
  return *plan;
}

std::string MiddleAfter(const std::function<void(PlanClass*)>& change) {
  Plan plan = SixStages();
  change(&plan.classes[3]);
  return ForwardOf(WithoutRepeatedLayers(plan), 3);
}

TEST(LeaveOutTest, OfEqualClassesTheFirstTwoAndTheLastKeepTheirLayers) {
  const Plan few = WithoutRepeatedLayers(SixStages());
  const std::vector<std::string> expected = {"0", "1", "2", "link", "4", "5"};
  for (size_t c = 0; c < expected.size(); ++c) EXPECT_EQ(ForwardOf(few, c), expected[c]) << c;
  EXPECT_TRUE(few.classes[3].blocks.empty());
  EXPECT_EQ(few.model.FindValue("layers.3.norm1"), kNone);
  EXPECT_EQ(few.classes[3].train.compute.size(), SixStages().classes[3].train.compute.size());
  EXPECT_EQ(VerifyPlan(SixStages()).findings.ToString(), "");
}

TEST(LeaveOutTest, AClassThatIsBoundOtherwiseStays) {
  const auto all = [](const Call& /*call*/) { return true; };
  ForEachBinding(SixStages().classes[3], 0, all,
                 [](const Damage& damage) { EXPECT_EQ(MiddleAfter(damage), "3"); });
}

TEST(LeaveOutTest, AClassWithOtherMemoryStays) {
  EXPECT_EQ(MiddleAfter([](PlanClass* c) { c->scalars[0].name.swap(c->scalars[1].name); }), "3");
  EXPECT_EQ(MiddleAfter([](PlanClass* c) { c->zeroed.pop_back(); }), "3");
  EXPECT_EQ(MiddleAfter([](PlanClass* c) { c->blocks[0].state_base += 64; }), "3");
  EXPECT_EQ(MiddleAfter([](PlanClass* c) { c->blocks[0].owner = false; }), "3");
  EXPECT_EQ(MiddleAfter([](PlanClass* c) { c->update.pop_back(); }), "3");
}

}  // namespace
}  // namespace mgc
