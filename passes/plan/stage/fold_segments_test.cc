#include "passes/plan/stage/fold_segments.h"

#include <functional>
#include <string>
#include <vector>

#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Segment MakeSegment() {
  Segment segment;
  segment.name = "layer.forward";
  segment.formals = {{}, {Region::kParams, ""}};
  Slot slot;
  slot.name = "layers.*.x";
  slot.type = {DType::kF32, {{4, "embed"}}};
  slot.sharding = Sharding::Whole(1);
  slot.bytes = 16;
  segment.slots = {slot, slot};
  segment.slots[1].name = "layers.*.y";
  segment.slots[1].formal = 1;
  Instr instr;
  instr.op = FindOp("scale");
  instr.attrs = {{"value", 0.5}};
  instr.inputs = {0};
  instr.outputs = {1};
  segment.instrs = {instr};
  return segment;
}

TEST(FoldSegmentsTest, EqualSegmentsAreOne) {
  SegmentFolder folder;
  EXPECT_EQ(folder.Add(MakeSegment()), 0);
  Segment elsewhere = MakeSegment();
  elsewhere.instrs[0].loc = {0, 17, 3};
  EXPECT_EQ(folder.Add(elsewhere), 0);
  EXPECT_EQ(std::move(folder).Take().size(), 1u);
}

// Whatever an executor would do otherwise keeps segments apart.
TEST(FoldSegmentsTest, DifferentSegmentsStayApart) {
  const std::vector<std::function<void(Segment*)>> changes = {
      [](Segment* s) { s->formals[1].region = Region::kGrads; },
      [](Segment* s) { s->formals[1].block = "head"; },
      [](Segment* s) { s->slots[0].name = "layers.*.z"; },
      [](Segment* s) { s->slots[0].type.dims[0].size = 8; },
      [](Segment* s) { s->slots[0].type.dims[0].name = "mlp"; },
      [](Segment* s) { s->slots[0].type.dtype = DType::kF64; },
      [](Segment* s) { s->slots[0].sharding.sum.Add(0); },
      [](Segment* s) { s->slots[0].sharding.max.Add(0); },
      [](Segment* s) { s->slots[0].sharding.dims[0].push_back(0); },
      [](Segment* s) { s->slots[0].sharding.storage.push_back(0); },
      [](Segment* s) { s->slots[1].formal = 0; },
      [](Segment* s) { s->slots[1].offset = 64; },
      [](Segment* s) { s->instrs[0].op = FindOp("gelu"); },
      [](Segment* s) {
        s->instrs[0].attrs = {{"value", 0.25}};
      },
      [](Segment* s) {
        s->instrs[0].attrs = {{"other", 0.5}};
      },
      [](Segment* s) { s->instrs[0].inputs = {1}; },
      [](Segment* s) { s->instrs[0].outputs = {0}; },
      [](Segment* s) { s->instrs[0].kind = InstrKind::kLoad; },
      [](Segment* s) { s->instrs[0].collective = 0; },
      [](Segment* s) { s->instrs.push_back(s->instrs[0]); },
      [](Segment* s) { s->slots.push_back(s->slots[0]); },
  };
  SegmentFolder folder;
  folder.Add(MakeSegment());
  for (size_t i = 0; i < changes.size(); ++i) {
    Segment other = MakeSegment();
    changes[i](&other);
    EXPECT_EQ(folder.Add(other), static_cast<int>(i) + 1) << "change " << i;
    EXPECT_EQ(folder.Add(other), static_cast<int>(i) + 1) << "change " << i;
  }
  // Told apart by their names.
  EXPECT_EQ(folder.segment(0).name, "layer.forward");
  EXPECT_EQ(folder.segment(1).name, "layer.forward.2");
  EXPECT_EQ(folder.segment(2).name, "layer.forward.3");
}

}  // namespace
}  // namespace mgc
