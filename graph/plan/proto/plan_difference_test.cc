#include "graph/plan/proto/plan_difference.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "graph/plan/proto/plan.pb.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/testing/odd_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using ::testing::HasSubstr;

std::string DifferenceAfter(const std::function<void(Plan*)>& change) {
  Plan changed = OddPlan();
  change(&changed);
  return PlanDifference(OddPlan(), changed);
}

TEST(PlanDifferenceTest, AnEqualPlanHasNone) {
  EXPECT_EQ(DifferenceAfter([](Plan*) {}), "");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->verifier = 0; }), "") << "whoever proved it";
}

TEST(PlanDifferenceTest, NamesTheFieldAndBothValues) {
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->vocab = 3; }), "vocab: 257, not 3\n");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->options[0].second = "x"; }).substr(0, 18),
            "options[0].value: ");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->segments[0].instrs[1].loc.line = 9; }),
            "segments[0].instrs[1].line: 3, not 9\n");
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->classes[0].memory.peak = 5; }),
            "classes[0].memory.peak: 16384, not 5\n");
  EXPECT_EQ(
      DifferenceAfter([](Plan* p) { p->classes[0].chunks[0].forward[0].bindings[2].offset = 0; }),
      "classes[0].chunks[0].forward[0].offsets[2]: 64, not 0\n");
  EXPECT_THAT(DifferenceAfter([](Plan* p) { p->classes[1].train.transfers[0].peer += 7; }),
              HasSubstr("classes[1].train.transfers"));
}

TEST(PlanDifferenceTest, ListsOfOtherLengthsDiffer) {
  EXPECT_EQ(DifferenceAfter([](Plan* p) { p->notes.push_back("more"); }).substr(0, 6), "notes[");
  EXPECT_NE(DifferenceAfter([](Plan* p) { p->classes[0].train.compute.pop_back(); }), "");
}

TEST(PlanDifferenceTest, TenAreShown) {
  const std::string difference = DifferenceAfter([](Plan* p) {
    for (Segment& segment : p->segments) {
      for (Slot& slot : segment.slots) {
        slot.name += "x";
        slot.offset += 64;
        slot.bytes += 64;
      }
    }
  });
  EXPECT_EQ(std::count(difference.begin(), difference.end(), '\n'), 10);
}

// Adds the names of all fields of a message's type and of those below it.
void AddFields(const Descriptor* type, std::set<std::string>* fields) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (!fields->insert(field->full_name()).second) continue;
    if (field->message_type() != nullptr) AddFields(field->message_type(), fields);
  }
}

// Removes the fields that the message or one below it sets to what is not their default.
void RemoveSet(const Message& message, std::set<std::string>* fields) {
  const Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    fields->erase(field->full_name());
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) {
      RemoveSet(reflection->GetMessage(message, field), fields);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      RemoveSet(reflection->GetRepeatedMessage(message, field, i), fields);
    }
  }
}

// So that reading it back tests every field of the wire form, but for those of folded layers
// (fold_layers_test) and of stages behind a class' first chunk (tests/same_loss/v_shape_test).
TEST(PlanDifferenceTest, TheOddPlanSetsEveryFieldOfTheWireForm) {
  wire::Plan message;
  ASSERT_TRUE(message.ParseFromString(SerializePlan(OddPlan()).substr(40)));
  std::set<std::string> fields;
  AddFields(wire::Plan::descriptor(), &fields);
  std::set<std::string> folds = {"mgc.wire.FoldedGraph.fold", "mgc.wire.StagePlace.chunk"};
  AddFields(wire::LayerFold::descriptor(), &folds);
  for (const std::string& field : folds) fields.erase(field);
  EXPECT_GT(fields.size(), 100u);
  RemoveSet(message, &fields);
  EXPECT_THAT(fields, testing::IsEmpty());
}

}  // namespace
}  // namespace mgc
