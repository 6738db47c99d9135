// Damage to bundles, in every place where there is one: what passes through a stage is lost, or put
// where another value belongs, or cut off, on one end or consistently on both. All is refused.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/own_models/compile_own_model.h"

namespace mgc {
namespace {

// A shared slot of a bundle, by segment and number.
struct BundleSlot {
  size_t segment = 0;
  size_t slot = 0;
};

bool IsRelay(const Segment& segment) { return segment.name.compare(0, 6, "relay.") == 0; }

std::vector<BundleSlot> BundleSlots(const Plan& plan) {
  std::vector<BundleSlot> slots;
  for (size_t g = 0; g < plan.segments.size(); ++g) {
    const Segment& segment = plan.segments[g];
    for (size_t s = 0; s < segment.slots.size(); ++s) {
      const Formal& formal = segment.formals[static_cast<size_t>(segment.slots[s].formal)];
      if (IsBoundary(formal.region) && formal.block == kSharedFrame) slots.push_back({g, s});
    }
  }
  return slots;
}

class BundleDamageTest : public testing::Test {
 protected:
  void Refused(const Plan& damaged, const std::string& what) {
    ++mutants_;
    EXPECT_FALSE(VerifyPlan(damaged).ok()) << what;
  }

  // Every instruction of every segment that hands values on.
  void ForEachHandedOn(const Plan& plan,
                       const std::function<void(Segment*, size_t instr)>& damage) {
    for (size_t g = 0; g < plan.segments.size(); ++g) {
      if (!IsRelay(plan.segments[g])) continue;
      for (size_t i = 0; i < plan.segments[g].instrs.size(); ++i) {
        Plan damaged = plan;
        damage(&damaged.segments[g], i);
        Refused(damaged, absl::StrCat(plan.segments[g].name, ", instruction ", i));
      }
    }
  }

  void SetUp() override {
    for (const auto& [model, options] : std::vector<std::pair<const char*, const char*>>{
             {"nested_skips", "pp=6 micro=2"},
             {"encoder_decoder", "pp=3 tp=2 micro=2"},
             {"unet", "pp=2 vp=2 interleaved micro=2"}}) {
      const absl::StatusOr<Plan> plan = CompileOwnModel(model, options);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_FALSE(BundleSlots(*plan).empty());
      plans_.push_back(*plan);
    }
  }
  void TearDown() override { EXPECT_GT(mutants_, 1); }

  std::vector<Plan> plans_;
  int mutants_ = 0;
};

TEST_F(BundleDamageTest, AValueIsNotPassedOn) {
  for (const Plan& plan : plans_) {
    ForEachHandedOn(plan, [](Segment* segment, size_t instr) {
      segment->instrs.erase(segment->instrs.begin() + static_cast<int64_t>(instr));
    });
  }
}

// The whole call, from the chunk of one class, forward or backward.
TEST_F(BundleDamageTest, NothingIsPassedOn) {
  for (const Plan& plan : plans_) {
    for (size_t c = 0; c < plan.classes.size(); ++c) {
      for (size_t k = 0; k < plan.classes[c].chunks.size(); ++k) {
        for (auto calls : {&Chunk::forward, &Chunk::backward}) {
          if ((plan.classes[c].chunks[k].*calls).back().layer != kNoLayer) continue;
          Plan damaged = plan;
          (damaged.classes[c].chunks[k].*calls).pop_back();
          Refused(damaged, absl::StrCat("class ", c, ", chunk ", k));
        }
      }
    }
  }
}

// In one stage: the reader, or who passes them on, takes one for the other of the same type.
TEST_F(BundleDamageTest, TwoValuesChangePlaces) {
  for (const Plan& plan : plans_) {
    const std::vector<BundleSlot> slots = BundleSlots(plan);
    for (const BundleSlot& a : slots) {
      for (const BundleSlot& b : slots) {
        const Segment& segment = plan.segments[a.segment];
        if (a.segment != b.segment || a.slot >= b.slot ||
            segment.slots[a.slot].formal != segment.slots[b.slot].formal) {
          continue;
        }
        Plan damaged = plan;
        std::vector<Slot>& there = damaged.segments[a.segment].slots;
        std::swap(there[a.slot].offset, there[b.slot].offset);
        Refused(damaged, absl::StrCat(segment.name, ", slots ", a.slot, " and ", b.slot));
      }
    }
  }
}

// One value overwrites or stands for its neighbour in the bundle.
TEST_F(BundleDamageTest, AValueIsAtTheNextPlace) {
  for (const Plan& plan : plans_) {
    for (const BundleSlot& at : BundleSlots(plan)) {
      for (const int64_t by : {-kSlotAlignment, kSlotAlignment}) {
        Plan damaged = plan;
        Slot& slot = damaged.segments[at.segment].slots[at.slot];
        slot.offset += by;
        if (slot.offset < 0) continue;
        Refused(damaged,
                absl::StrCat(plan.segments[at.segment].name, ", slot ", at.slot, ", ", by));
      }
    }
  }
}

// What passes through is replaced by what else the stage receives.
TEST_F(BundleDamageTest, AnotherValueIsPassedOn) {
  for (const Plan& plan : plans_) {
    ForEachHandedOn(plan, [](Segment* segment, size_t instr) {
      Slot other = segment->slots[static_cast<size_t>(segment->instrs[instr].inputs[0])];
      other.offset = other.offset == 0 ? kSlotAlignment : 0;
      segment->instrs[instr].inputs[0] = static_cast<int>(segment->slots.size());
      segment->slots.push_back(other);
    });
  }
}

// Both ends of all transfers of a boundary agree on less.
TEST_F(BundleDamageTest, ABundleIsCutOff) {
  for (const Plan& plan : plans_) {
    for (const bool forward : {true, false}) {
      Plan damaged = plan;
      bool any = false;
      for (PlanClass& made : damaged.classes) {
        for (Transfer& transfer : made.train.transfers) {
          const bool is_forward = transfer.ref.kind == TransferKind::kSendForward ||
                                  transfer.ref.kind == TransferKind::kRecvForward;
          if (is_forward != forward || transfer.bytes <= kSlotAlignment) continue;
          transfer.bytes -= kSlotAlignment;
          any = true;
        }
      }
      if (any) Refused(damaged, forward ? "forward" : "backward");
    }
  }
}

// A layer adds nothing to the gradient that it passes on.
TEST_F(BundleDamageTest, AGradientOnItsWayIsLost) {
  for (const Plan& plan : plans_) {
    for (const BundleSlot& at : BundleSlots(plan)) {
      const Segment& segment = plan.segments[at.segment];
      for (size_t i = 0; i < segment.instrs.size(); ++i) {
        const Instr& instr = segment.instrs[i];
        const bool adds = instr.op != nullptr && instr.op->name == "add" &&
                          instr.phase == Phase::kBackward && instr.inputs.size() == 2;
        const bool here = adds && (instr.inputs[0] == static_cast<int>(at.slot) ||
                                   instr.inputs[1] == static_cast<int>(at.slot));
        if (!here) continue;
        const int kept = instr.inputs[instr.inputs[0] == static_cast<int>(at.slot) ? 1 : 0];
        Plan damaged = plan;
        damaged.segments[at.segment].instrs[i].inputs = {kept, kept};
        Refused(damaged, absl::StrCat(segment.name, ", instruction ", i));
      }
    }
  }
}

}  // namespace
}  // namespace mgc
