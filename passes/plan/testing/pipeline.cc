#include "passes/plan/testing/pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "gtest/gtest.h"
#include "passes/config/place_layers.h"
#include "passes/plan/allocate.h"
#include "passes/plan/forms/check_forms.h"
#include "passes/plan/order.h"
#include "passes/plan/schedule.h"

namespace mgc {
namespace {

int NumStages(const Pipeline& pipeline) { return static_cast<int>(pipeline.pp * pipeline.vp); }

class PipelineBuilder {
 public:
  explicit PipelineBuilder(const Pipeline& pipeline)
      : pipeline_(pipeline), last_stage_(NumStages(pipeline) - 1) {
    std::vector<MeshAxis> axes;
    if (pipeline.collectives) axes.push_back({"tp", 2});
    axes.push_back({"pp", pipeline.pp});
    plan_.mesh = *Mesh::Create(axes);
  }

  StagedPlan Build() {
    for (int64_t c = 0; c < pipeline_.pp; ++c) plan_.classes.push_back(MakeClass(c));
    plan_.stages = LoopPlaces(pipeline_.pp, pipeline_.vp);
    return std::move(plan_);
  }

 private:
  StagedClass MakeClass(int64_t c) {
    StagedClass made;
    made.coordinate = static_cast<int>(c);
    for (int64_t k = 0; k < pipeline_.vp; ++k) {
      StagedChunk chunk;
      chunk.stage = static_cast<int>(k * pipeline_.pp + c);
      chunk.first_layer = chunk.stage;
      chunk.num_layers = 1;
      chunk.has_embedding = chunk.stage == 0;
      chunk.has_head = chunk.stage == last_stage_;
      chunk.frame_bytes = kFrame;
      chunk.forward = Calls(ForwardSegment(chunk), chunk);
      made.eval.chunks.push_back(chunk);
      chunk.backward = Calls(BackwardSegment(chunk), chunk);
      std::reverse(chunk.backward.begin(), chunk.backward.end());
      made.train.chunks.push_back(chunk);
    }
    if (pipeline_.pp == 1) return made;
    // The first and the last stage share a weight; then all sum the norm.
    const bool is_end = c == 0 || c == pipeline_.pp - 1;
    if (is_end) made.train.update.push_back(CallOf(UpdateSegment("embedding"), kNoLayer));
    made.train.update.push_back(CallOf(UpdateSegment(""), kNoLayer));
    made.eval.update.push_back(CallOf(UpdateSegment(""), kNoLayer));
    return made;
  }

  // Upwards: embedding and head do nothing, the layer does it all.
  std::vector<StagedCall> Calls(const Segment& segment, const StagedChunk& chunk) {
    const Segment nothing = NewSegment("nothing");
    std::vector<StagedCall> calls;
    if (chunk.has_embedding) calls.push_back(CallOf(nothing, kEmbeddingLayer));
    calls.push_back(CallOf(segment, chunk.first_layer));
    if (chunk.has_head) calls.push_back(CallOf(nothing, last_stage_ + 1));
    return calls;
  }

  StagedCall CallOf(const Segment& segment, int layer) {
    StagedCall call;
    call.layer = layer;
    while (call.segment < static_cast<int>(plan_.segments.size()) &&
           plan_.segments[call.segment].name != segment.name) {
      ++call.segment;
    }
    if (call.segment == static_cast<int>(plan_.segments.size())) plan_.segments.push_back(segment);
    for (const Formal& formal : segment.formals)
      call.bindings.push_back({BaseOf(formal.region), 0});
    return call;
  }

  static StagedBase BaseOf(Region region) {
    if (region == Region::kInput) return StagedBase::kInput;
    if (region == Region::kOutput) return StagedBase::kOutput;
    if (region == Region::kGradInput) return StagedBase::kGradInput;
    return region == Region::kGradOutput ? StagedBase::kGradOutput : StagedBase::kRegion;
  }

  Segment ForwardSegment(const StagedChunk& chunk) const {
    Segment segment = NewSegment(absl::StrCat("forward ", chunk.stage));
    const int from = SlotIn(Region::kInput, chunk.stage > 0, &segment);
    const int to = SlotIn(Region::kOutput, chunk.stage < last_stage_, &segment);
    if (pipeline_.collectives) AddCollective("", plan_.mesh.Find("tp").AsSet(), &segment);
    const bool twice = pipeline_.slow_end && chunk.stage == last_stage_;
    for (int i = 0; i < (twice ? 2 : 1); ++i) AddOp(from, to, &segment);
    return Finished(std::move(segment));
  }

  Segment BackwardSegment(const StagedChunk& chunk) const {
    Segment segment = NewSegment(absl::StrCat("backward ", chunk.stage));
    const int input = SlotIn(Region::kInput, chunk.stage > 0, &segment);
    const int from = SlotIn(Region::kGradInput, chunk.stage < last_stage_, &segment);
    const int to = SlotIn(Region::kGradOutput, chunk.stage > 0, &segment);
    if (pipeline_.collectives) AddCollective("", plan_.mesh.Find("tp").AsSet(), &segment);
    AddOp(from, SlotIn(Region::kTransient, false, &segment), &segment);
    AddOp(input, to, &segment);
    return Finished(std::move(segment));
  }

  Segment Finished(Segment segment) const {
    if (pipeline_.collectives) AddCollective("", plan_.mesh.Find("tp").AsSet(), &segment);
    return segment;
  }

  static Segment NewSegment(const std::string& name) {
    Segment segment;
    segment.name = name;
    segment.formals = {{}};
    return segment;
  }

  // A slot behind a formal of its own; a transient one where the stage has no such boundary.
  static int SlotIn(Region region, bool has, Segment* segment) {
    if (has) segment->formals.push_back({region, ""});
    segment->slots.push_back(MakeSlot(has ? static_cast<int>(segment->formals.size()) - 1 : 0, {}));
    return static_cast<int>(segment->slots.size()) - 1;
  }

  static Slot MakeSlot(int formal, AxisSet owed) {
    Slot slot;
    slot.type = {DType::kF32, {{16, ""}}};
    slot.sharding = Sharding::Whole(1);
    slot.sharding.sum = owed;
    slot.formal = formal;
    slot.bytes = 64;
    return slot;
  }

  static void AddOp(int from, int to, Segment* segment) {
    Instr instr;
    instr.op = FindOp("reshard");
    instr.inputs = {from};
    instr.outputs = {to};
    segment->instrs.push_back(instr);
  }

  // Of a group; else over pp.
  Segment UpdateSegment(const std::string& group) const {
    Segment segment = NewSegment(absl::StrCat("update ", group));
    AddCollective(group, group.empty() ? plan_.mesh.Find("pp").AsSet() : AxisSet(), &segment);
    return segment;
  }

  // Pays what is owed over `owed`.
  static void AddCollective(const std::string& group, AxisSet owed, Segment* segment) {
    Instr start;
    start.kind = InstrKind::kStart;
    start.op = FindOp("all_reduce");
    if (!group.empty()) SetJoinsEnds(&start);
    const int first = static_cast<int>(segment->slots.size());
    segment->slots.push_back(MakeSlot(0, owed));
    segment->slots.push_back(MakeSlot(0, {}));
    start.inputs = {first};
    start.outputs = {first + 1};
    start.collective = segment->num_collectives++;
    segment->instrs.push_back(start);
    Instr done;
    done.kind = InstrKind::kWait;
    done.collective = start.collective;
    segment->instrs.push_back(done);
  }

  const Pipeline pipeline_;
  const int last_stage_;
  StagedPlan plan_;
};

template <typename Form>
void ExpectSound(const Form& form, const Graph& model) {
  EXPECT_EQ(FindViolations(form, model).ToString(), "");
}

}  // namespace

Machine MachineOf(const Costs& costs) {
  Machine machine;
  machine.name = costs.name;
  machine.memory = int64_t{1} << 30;
  machine.memory_bandwidth = 1e30;
  machine.op_overhead = costs.overhead;
  machine.compute = {{"f32", 1e30, 1.0}};
  machine.tiers = {{"all", kAnyRanks, costs.bandwidth, 1.0, costs.latency}};
  return machine;
}

std::string NameOf(const Pipeline& p) {
  return absl::StrCat(ToString(p.kind), " pp ", p.pp, " vp ", p.vp, " M ", p.micro_batches, " ",
                      p.costs.name, p.collectives ? " with collectives" : "");
}

Graph ModelOf(const Pipeline& pipeline) {
  GraphBuilder builder("pipeline", Level::kLogical);
  builder.set_num_layers(NumStages(pipeline));
  return std::move(builder).Finish();
}

StagedPlan Staged(const Pipeline& pipeline) { return PipelineBuilder(pipeline).Build(); }

OrderedPipeline MustOrder(const Pipeline& pipeline) {
  OrderedPipeline result;
  absl::StatusOr<PipelineSchedule> schedule = BuildSchedule(
      {pipeline.kind, pipeline.pp, pipeline.vp, pipeline.micro_batches, pipeline.group_size});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return result;
  const Graph model = ModelOf(pipeline);
  ScheduledPlan scheduled{Staged(pipeline), *std::move(schedule)};
  ExpectSound(scheduled, model);
  absl::StatusOr<OrderedPlan> ordered =
      Order(std::move(scheduled), MachineOf(pipeline.costs), &result.step);
  EXPECT_TRUE(ordered.ok()) << ordered.status();
  if (!ordered.ok()) return result;
  ExpectSound(*ordered, model);
  for (const OrderedClass& c : ordered->classes) result.pools.push_back(c.pool);
  absl::StatusOr<Plan> plan = Allocate(*std::move(ordered), MachinePresets().front().host);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return result;
  result.plan = *std::move(plan);
  result.plan.model = model;
  result.plan.machine = MachinePresets().front();
  result.plan.micro_batch_size = 1;
  result.plan.global_batch_size = pipeline.micro_batches;
  result.plan.num_micro_batches = pipeline.micro_batches;
  result.plan.seq_length = 1;
  return result;
}

std::vector<Pipeline> Pipelines(const Costs& costs, bool collectives) {
  std::vector<Pipeline> pipelines;
  for (int64_t pp : {1, 2, 3, 4, 8}) {
    for (int64_t vp : {1, 2, 3}) {
      for (int64_t micro_batches : {1, 2, 3, 4, 5, 8, 9}) {
        if (pp == 8 && (vp == 3 || micro_batches > 5)) continue;  // large, nothing new
        for (ScheduleKind kind :
             {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
          if (vp > 1 && (kind != ScheduleKind::kInterleaved || pp == 1)) continue;
          pipelines.push_back({kind, pp, vp, micro_batches, costs, collectives});
        }
      }
    }
  }
  return pipelines;
}

}  // namespace mgc
