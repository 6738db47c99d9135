// What layers take in turn with their neighbours, gathered parameters and gradients on their way
// into pieces: not put there, put there by another layer, read too early, overwritten too early,
// counted twice or summed in another type. Each is refused, by name.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

Chunk& ChunkOf(Plan* plan) { return plan->classes[0].chunks[0]; }
std::vector<Call>& ForwardOf(Plan* plan) { return ChunkOf(plan).forward; }
std::vector<Call>& BackwardOf(Plan* plan) { return ChunkOf(plan).backward; }

// The call of a segment for a layer: `layer.backward.reduce`.
std::vector<Call>::iterator CallOf(Plan* plan, std::vector<Call>* calls, const char* segment,
                                   int layer) {
  const auto found = std::find_if(calls->begin(), calls->end(), [&](const Call& call) {
    return plan->segments[static_cast<size_t>(call.segment)].name == segment && call.layer == layer;
  });
  EXPECT_NE(found, calls->end()) << segment;
  return found;
}

int64_t* PlaceOf(Plan* plan, Call* call, Region region) {
  const Segment& segment = plan->segments[static_cast<size_t>(call->segment)];
  for (size_t f = 0; f < segment.formals.size(); ++f) {
    if (segment.formals[f].region == region) return &call->bindings[f].offset;
  }
  return nullptr;
}

// All layers in the place of layer 0, or in that of `place`.
void PutInOnePlace(Plan* plan, Region region, int64_t place) {
  for (std::vector<Call>* calls : ListsOf(&ChunkOf(plan))) {
    for (Call& call : *calls) {
      int64_t* at = PlaceOf(plan, &call, region);
      if (at != nullptr) *at = place;
    }
  }
}

void Move(std::vector<Call>* calls, std::vector<Call>::iterator from,
          std::vector<Call>::iterator to) {
  const Call call = *from;
  const auto at = to - calls->begin() - (from < to ? 1 : 0);
  calls->erase(from);
  calls->insert(calls->begin() + at, call);
}

constexpr char kForward[] = "layer.forward";
constexpr char kGather[] = "layer.forward.gather";
constexpr char kBackward[] = "layer.backward";
constexpr char kReduce[] = "layer.backward.reduce";
constexpr char kCollect[] = "layer.backward.collect";

const PlanDamage kDamages[] = {
    {"ForwardDoesNotWait", "order_v7",
     [](Plan* p) { CallOf(p, &ForwardOf(p), kForward, 2)->running = kAnyRunning; }},
    {"ForwardWaitsForOneLess", "order_v7",
     [](Plan* p) { ++CallOf(p, &ForwardOf(p), kForward, 1)->running; }},
    {"BackwardDoesNotWait", "order_v7",
     [](Plan* p) { CallOf(p, &BackwardOf(p), kBackward, 1)->running = kAnyRunning; }},
    {"CollectedBeforeItIsSummed", "order_v7",
     [](Plan* p) { CallOf(p, &BackwardOf(p), kCollect, 2)->running = kAnyRunning; }},
    {"TheLastSumIsNotAwaited", "order_v",
     [](Plan* p) { BackwardOf(p).back().running = kAnyRunning; }},
    {"NotGathered", "order_v1",
     [](Plan* p) { ForwardOf(p).erase(CallOf(p, &ForwardOf(p), kGather, 2)); }},
    {"NotGatheredInBackward", "order_v1",
     [](Plan* p) { BackwardOf(p).erase(CallOf(p, &BackwardOf(p), "layer.backward.gather", 1)); }},
    {"GatheredBehindItsForward", "order_v1",
     [](Plan* p) {
       std::vector<Call>& calls = ForwardOf(p);
       Move(&calls, CallOf(p, &calls, kGather, 2), CallOf(p, &calls, kForward, 2) + 1);
     }},
    {"GatheredOverTheLayerThatComputes", "order_v",
     [](Plan* p) {
       std::vector<Call>& calls = ForwardOf(p);
       Move(&calls, CallOf(p, &calls, kGather, 3), CallOf(p, &calls, kForward, 1));
     }},
    {"GatheredOfAnotherLayer", "order_v1",
     [](Plan* p) {
       Call& call = *CallOf(p, &ForwardOf(p), kGather, 2);
       *PlaceOf(p, &call, Region::kParams) =
           *PlaceOf(p, &*CallOf(p, &ForwardOf(p), kGather, 1), Region::kParams);
     }},
    {"GatheredInTheOtherPlace", "order_v1",
     [](Plan* p) {
       Call& call = *CallOf(p, &ForwardOf(p), kGather, 2);
       *PlaceOf(p, &call, Region::kGathered) =
           *PlaceOf(p, &*CallOf(p, &ForwardOf(p), kGather, 1), Region::kGathered);
     }},
    {"GatheredInOnePlace", "order_v",
     [](Plan* p) {
       PutInOnePlace(p, Region::kGathered,
                     *PlaceOf(p, &*CallOf(p, &ForwardOf(p), kGather, 0), Region::kGathered));
     }},
    {"GatheredOverParameters", "placement_v8",
     [](Plan* p) { PutInOnePlace(p, Region::kGathered, p->classes[0].blocks[1].param_base); }},
    {"NotSummed", "memory_v3",
     [](Plan* p) { BackwardOf(p).erase(CallOf(p, &BackwardOf(p), kReduce, 2)); }},
    {"SummedTwiceAtOnce", "order_v7",
     [](Plan* p) {
       const auto reduce = CallOf(p, &BackwardOf(p), kReduce, 2);
       BackwardOf(p).insert(reduce, Call(*reduce));
     }},
    {"NotCollected", "placement_v7",
     [](Plan* p) { BackwardOf(p).erase(CallOf(p, &BackwardOf(p), kCollect, 2)); }},
    {"CollectedTwice", "meaning",
     [](Plan* p) {
       const auto collect = CallOf(p, &BackwardOf(p), kCollect, 2);
       BackwardOf(p).insert(collect + 1, Call(*collect))->running = kAnyRunning;
     }},
    {"CollectedFromTheOtherPlace", "order_v1",
     [](Plan* p) {
       Call& call = *CallOf(p, &BackwardOf(p), kCollect, 2);
       *PlaceOf(p, &call, Region::kOwed) =
           *PlaceOf(p, &*CallOf(p, &BackwardOf(p), kCollect, 1), Region::kOwed);
     }},
    {"CollectedForAnotherLayer", "order_v1",
     [](Plan* p) {
       Call& call = *CallOf(p, &BackwardOf(p), kCollect, 2);
       *PlaceOf(p, &call, Region::kGrads) =
           *PlaceOf(p, &*CallOf(p, &BackwardOf(p), kCollect, 1), Region::kGrads);
     }},
    {"GradientsInOnePlace", "order_v",
     [](Plan* p) {
       PutInOnePlace(p, Region::kOwed,
                     *PlaceOf(p, &*CallOf(p, &BackwardOf(p), kReduce, 0), Region::kOwed));
     }},
    {"OfAnotherParameter", "meaning",
     [](Plan* p) {
       // Two products of one size.
       Segment& segment = SegmentOf(p, kCollect);
       std::swap(segment.slots[static_cast<size_t>(SlotOf(segment, "mlp.gate.grad.to"))].offset,
                 segment.slots[static_cast<size_t>(SlotOf(segment, "mlp.up.grad.to"))].offset);
     }},
    {"SummedInAnotherType", "placement_v17", [](Plan* p) { p->gradient_sums = DType::kBF16; }},
    {"FewerBytesOfGradients", "memory_v4",
     [](Plan* p) {
       p->classes[0].memory.grads -= 64;
       p->classes[0].memory.transient += 64;
     }},
    {"FewerBytesOfCopies", "memory_v4",
     [](Plan* p) {
       p->classes[0].memory.copies -= 64;
       p->classes[0].memory.transient += 64;
     }},
};

class TurnsDamageTest : public testing::TestWithParam<PlanDamage> {};

TEST_P(TurnsDamageTest, IsRefused) {
  Plan plan = CompileTiny("dp2_zero3");
  ASSERT_EQ(FoundIn(plan), "");
  GetParam().apply(&plan);
  EXPECT_THAT(FoundIn(plan), HasSubstr(GetParam().label));
}

INSTANTIATE_TEST_SUITE_P(All, TurnsDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
