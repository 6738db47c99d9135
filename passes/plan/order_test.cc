#include "passes/plan/order.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_fold.h"
#include "gtest/gtest.h"
#include "passes/config/place_layers.h"
#include "passes/plan/allocate.h"
#include "passes/plan/testing/happens_before.h"
#include "passes/plan/testing/vectors.h"

namespace mgc {
namespace {

constexpr int64_t kUnit = 1000;  // ns that one op takes
constexpr int64_t kFrame = 64;   // bytes a chunk keeps per micro-batch

// How much slower communication is than compute.
struct Costs {
  const char* name;
  double overhead;   // seconds per op
  double bandwidth;  // bytes per second
  double latency;
};
constexpr Costs kFree = {"free", 0, 1e30, 0};
constexpr Costs kFastNetwork = {"fast network", kUnit * 1e-9, 1e30, 0};
constexpr Costs kEven = {"even", kUnit * 1e-9, 1e9, 200e-9};
constexpr Costs kSlowNetwork = {"slow network", kUnit * 1e-9, 1e6, 5000e-9};

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

// A pipeline of equal chunks by hand: forward takes one unit, backward two; with `collectives` each
// begins and ends with an all-reduce over tp.
struct Pipeline {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t micro_batches = 1;
  Costs costs = kFastNetwork;
  bool collectives = false;
  int64_t group_size = 0;
  bool slow_end = false;  // the last stage takes twice as long forward
};

class PipelineBuilder {
 public:
  explicit PipelineBuilder(const Pipeline& pipeline) : pipeline_(pipeline) {
    std::vector<MeshAxis> axes;
    if (pipeline.collectives) axes.push_back({"tp", 2});
    axes.push_back({"pp", pipeline.pp});
    plan_.mesh = *Mesh::Create(axes);
  }

  StagedPlan Build() {
    plan_.segments.push_back(PassSegment("forward", 1, {Region::kInput, Region::kOutput}));
    plan_.segments.push_back(
        PassSegment("backward", 2, {Region::kInput, Region::kGradInput, Region::kGradOutput}));
    plan_.segments.push_back(UpdateSegment("embedding"));
    plan_.segments.push_back(UpdateSegment(""));
    for (int64_t c = 0; c < pipeline_.pp; ++c) plan_.classes.push_back(MakeClass(c));
    plan_.stages = LoopPlaces(pipeline_.pp, pipeline_.vp);
    return std::move(plan_);
  }

 private:
  StagedClass MakeClass(int64_t c) const {
    StagedClass made;
    made.coordinate = static_cast<int>(c);
    for (int64_t k = 0; k < pipeline_.vp; ++k) {
      StagedChunk chunk;
      chunk.stage = static_cast<int>(k * pipeline_.pp + c);
      chunk.num_layers = 1;
      chunk.frame_bytes = kFrame;
      const bool twice = pipeline_.slow_end && chunk.stage == pipeline_.pp * pipeline_.vp - 1;
      chunk.forward.assign(twice ? 2 : 1, MakeCall(0, {StagedBase::kInput, StagedBase::kOutput}));
      made.eval.chunks.push_back(chunk);
      chunk.backward = {
          MakeCall(1, {StagedBase::kInput, StagedBase::kGradInput, StagedBase::kGradOutput})};
      made.train.chunks.push_back(chunk);
    }
    // The first and the last stage share a weight; then all sum the norm.
    const bool ends = pipeline_.pp > 1 && (c == 0 || c == pipeline_.pp - 1);
    if (ends) made.train.update.push_back(MakeCall(2, {}));
    if (pipeline_.pp > 1) made.train.update.push_back(MakeCall(3, {}));
    if (pipeline_.pp > 1) made.eval.update.push_back(MakeCall(3, {}));
    return made;
  }

  static StagedCall MakeCall(int segment, const std::vector<StagedBase>& bases) {
    StagedCall call;
    call.segment = segment;
    call.bindings.push_back({});  // transient
    for (StagedBase base : bases) call.bindings.push_back({base, 0});
    return call;
  }

  Slot MakeSlot(int formal, AxisSet owed) const {
    Slot slot;
    slot.type = {DType::kF32, {{16, ""}}};
    slot.sharding = Sharding::Whole(1);
    slot.sharding.sum = owed;
    slot.formal = formal;
    slot.bytes = 64;
    return slot;
  }

  Segment PassSegment(const char* name, int units, const std::vector<Region>& regions) const {
    Segment segment;
    segment.name = name;
    segment.formals = {{}};
    const AxisSet tp = plan_.mesh.Find("tp").AsSet();
    segment.slots = {MakeSlot(0, tp), MakeSlot(0, {})};
    for (const Region region : regions) {
      segment.formals.push_back({region, ""});
      segment.slots.push_back(MakeSlot(static_cast<int>(segment.formals.size()) - 1, {}));
    }
    if (pipeline_.collectives) AddCollective("", true, &segment);
    for (int i = 0; i < units; ++i) {
      Instr instr;
      instr.op = FindOp("reshard");
      instr.inputs = {2};
      instr.outputs = {3};
      segment.instrs.push_back(instr);
    }
    if (pipeline_.collectives) AddCollective("", false, &segment);
    for (int i = 0; i < segment.num_collectives; ++i) AddWait(i, &segment);
    return segment;
  }

  Segment UpdateSegment(const char* group) const {
    Segment segment;
    segment.name = absl::StrCat("update ", group);
    segment.formals = {{}};
    segment.slots = {MakeSlot(0, plan_.mesh.Find("pp").AsSet()), MakeSlot(0, {})};
    AddCollective(group, false, &segment);
    AddWait(0, &segment);
    return segment;
  }

  static void AddCollective(const std::string& group, bool wait, Segment* segment) {
    Instr start;
    start.kind = InstrKind::kStart;
    start.op = FindOp("all_reduce");
    if (!group.empty()) start.attrs.Set("group", group);
    start.inputs = {0};
    start.outputs = {1};
    start.collective = segment->num_collectives++;
    segment->instrs.push_back(start);
    if (wait) AddWait(start.collective, segment);
  }

  static void AddWait(int collective, Segment* segment) {
    for (const Instr& instr : segment->instrs) {
      if (instr.kind == InstrKind::kWait && instr.collective == collective) return;
    }
    Instr wait;
    wait.kind = InstrKind::kWait;
    wait.collective = collective;
    segment->instrs.push_back(wait);
  }

  const Pipeline pipeline_;
  StagedPlan plan_;
};

struct Ordered {
  Plan plan;
  SimulatedStep step;
  std::vector<int64_t> pools;
};

Ordered MustOrder(const Pipeline& pipeline) {
  Ordered result;
  absl::StatusOr<PipelineSchedule> schedule = BuildSchedule(
      {pipeline.kind, pipeline.pp, pipeline.vp, pipeline.micro_batches, pipeline.group_size});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return result;
  const Machine machine = MachineOf(pipeline.costs);
  absl::StatusOr<OrderedPlan> ordered =
      Order({PipelineBuilder(pipeline).Build(), *std::move(schedule)}, machine, &result.step);
  EXPECT_TRUE(ordered.ok()) << ordered.status();
  if (!ordered.ok()) return result;
  for (const OrderedClass& c : ordered->classes) result.pools.push_back(c.pool);
  result.plan = Allocate(*std::move(ordered));
  result.plan.machine = machine;
  result.plan.num_micro_batches = pipeline.micro_batches;
  return result;
}

// Frames side by side, from the addresses they were given.
int64_t LiveFrames(const Program& program) {
  int64_t low = INT64_MAX;
  int64_t high = 0;
  for (const Action& action : program.compute) {
    if (action.frame < 0) continue;
    low = std::min(low, action.frame);
    high = std::max(high, action.frame + kFrame);
  }
  return (high - low) / kFrame;
}

std::string NameOf(const Pipeline& p) {
  return absl::StrCat(ToString(p.kind), " pp ", p.pp, " vp ", p.vp, " M ", p.micro_batches, " ",
                      p.costs.name, p.collectives ? " with collectives" : "");
}

// Every schedule of these sizes, at these costs.
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

TEST(OrderTest, NeverWaitsForItself) {
  int cases = 0;
  for (const Costs& costs : {kFree, kFastNetwork, kEven, kSlowNetwork}) {
    for (bool collectives : {false, true}) {
      for (const Pipeline& pipeline : Pipelines(costs, collectives)) {
        SCOPED_TRACE(NameOf(pipeline));
        const Ordered ordered = MustOrder(pipeline);
        EXPECT_EQ(CheckOrder(ordered.plan, false), "");
        EXPECT_EQ(CheckOrder(ordered.plan, true), "");
        if (HasFailure()) return;
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 1000);
}

TEST(OrderTest, RefusesAStepOfCenturies) {
  constexpr Costs kGlacier = {"glacier", 5e8, 1e30, 0};  // 16 years an op
  StagedPlan plan = PipelineBuilder({ScheduleKind::kOneFOneB, 4, 1, 64, kGlacier, true}).Build();
  PipelineSchedule schedule = *BuildSchedule({ScheduleKind::kOneFOneB, 4, 1, 64});
  const absl::Status status =
      Order({std::move(plan), std::move(schedule)}, MachineOf(kGlacier)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("machine glacier [S4]"), absl::string_view::npos) << status;
}

// The first stage's backward before the forward whose gradient it takes.
TEST(OrderTest, RefusesAScheduleThatWaitsForItself) {
  StagedPlan plan = PipelineBuilder({ScheduleKind::kOneFOneB, 2, 1, 4, kFastNetwork}).Build();
  PipelineSchedule schedule = *BuildSchedule({ScheduleKind::kOneFOneB, 2, 1, 4});
  std::vector<ScheduleAction>& first = schedule.ranks[0];
  const auto backward =
      std::find(first.begin(), first.end(), ScheduleAction{0, ScheduleActionKind::kBackward, 0});
  ASSERT_NE(backward, first.end());
  std::rotate(first.begin(), backward, backward + 1);
  const absl::Status status =
      Order({std::move(plan), std::move(schedule)}, MachineOf(kFastNetwork)).status();
  EXPECT_EQ(status, absl::FailedPreconditionError("the schedule waits for itself: pipeline rank 0 "
                                                  "never runs 0B0 [order_c1]"));
}

// What the checker above is for: it sees a plan that was put out of order.
TEST(OrderTest, TheCheckSeesWhatIsWrong) {
  const Pipeline pipeline{ScheduleKind::kOneFOneB, 4, 1, 8, kEven, true};
  const Plan sound = MustOrder(pipeline).plan;
  ASSERT_EQ(CheckOrder(sound, false), "");

  Plan swapped = sound;  // two neighbouring transfers of one rank, each anchored where it was
  std::vector<Transfer>& transfers = swapped.classes[1].train.transfers;
  int circles = 0;
  for (size_t i = 0; i + 1 < transfers.size(); ++i) {
    std::swap(transfers[i], transfers[i + 1]);
    std::swap(transfers[i].anchor, transfers[i + 1].anchor);
    std::swap(transfers[i].issued, transfers[i + 1].issued);
    circles += CheckOrder(swapped, false).empty() ? 0 : 1;
    swapped = sound;
  }
  EXPECT_GT(circles, 0);

  // A receive that no longer waits for the last reader of its slot. Most would be kept back by what
  // is sent before them anyway.
  const Plan plain = MustOrder({ScheduleKind::kInterleaved, 4, 2, 8, kSlowNetwork, false}).plan;
  int races = 0;
  for (size_t c = 0; c < plain.classes.size(); ++c) {
    for (size_t i = 0; i < plain.classes[c].train.transfers.size(); ++i) {
      Plan early = plain;
      Transfer& transfer = early.classes[c].train.transfers[i];
      if (transfer.after.empty()) continue;
      transfer.after.clear();
      races += CheckOrder(early, false).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(races, 0);

  Plan blind = sound;  // an action that does not wait for what it reads
  for (Action& action : blind.classes[2].train.compute) action.waits.clear();
  EXPECT_NE(CheckOrder(blind, false), "");

  Plan lost = sound;
  lost.classes[3].train.transfers.pop_back();
  EXPECT_NE(CheckOrder(lost, false), "");

  Plan late = sound;
  std::swap(late.classes[0].train.compute[0], late.classes[0].train.compute[1]);
  EXPECT_NE(CheckOrder(late, false), "");
}

// (pp - 1) / (vp M) of the busy time, in whole numbers, wherever the group size is legal.
TEST(OrderTest, BubbleIsTheIdealAtEqualCosts) {
  for (int64_t pp : {1, 2, 4, 8}) {
    for (int64_t vp : {1, 2, 3}) {
      if (pp == 1 && vp > 1) continue;
      for (int64_t micro_batches : {1, 2, 4, 5, 7, 8, 12, 16}) {
        for (ScheduleKind kind :
             {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
          if (vp > 1 && kind != ScheduleKind::kInterleaved) continue;
          if (vp > 1 && micro_batches < pp) continue;  // never ideal
          const Pipeline pipeline{kind, pp, vp, micro_batches};
          SCOPED_TRACE(NameOf(pipeline));
          const Ordered ordered = MustOrder(pipeline);
          const int64_t busy = 3 * kUnit * vp * micro_batches;
          EXPECT_EQ(ordered.step.busy_ns, std::vector<int64_t>(pp, busy));
          EXPECT_EQ((ordered.step.makespan_ns - busy) * vp * micro_batches, (pp - 1) * busy);
        }
      }
    }
  }
}

// Frames alive at one time, through the addresses they were given, are those of Megatron's
// schedules: makespan and peaks of the outside vectors.
TEST(OrderTest, PeakFramesAreMegatrons) {
  int cases = 0;
  for (const std::vector<std::string>& row : ReadVectorRows("pipeline_bubbles.txt")) {
    SCOPED_TRACE(absl::StrCat("pp ", row[0], " vp ", row[1], " M ", row[2], " g ", row[3]));
    ASSERT_EQ(row.size(), 6u);
    const int64_t vp = ToInt(row[1]);
    Pipeline pipeline{vp == 0 ? ScheduleKind::kOneFOneB : ScheduleKind::kInterleaved, ToInt(row[0]),
                      std::max<int64_t>(vp, 1), ToInt(row[2])};
    pipeline.group_size = vp == 0 ? 0 : ToInt(row[3]);
    if (pipeline.pp * pipeline.vp * pipeline.micro_batches > 512) continue;
    const Ordered ordered = MustOrder(pipeline);
    EXPECT_EQ(ordered.step.makespan_ns, ToInt(row[4]) * kUnit);
    const std::vector<int64_t> peaks = ToInts(row[5]);
    ASSERT_EQ(peaks.size(), ordered.plan.classes.size());
    for (size_t c = 0; c < peaks.size(); ++c) {
      EXPECT_EQ(LiveFrames(ordered.plan.classes[c].train), peaks[c]) << "rank " << c;
    }
    ++cases;
  }
  EXPECT_GT(cases, 50);
}

// One pool of slots per class, not a fixed mailbox per channel.
TEST(OrderTest, PoolsStaySmall) {
  const Ordered ordered = MustOrder({ScheduleKind::kInterleaved, 4, 4, 32, kEven, true});
  for (size_t c = 0; c < ordered.pools.size(); ++c) {
    // Inputs are kept until their backward, one slot per live frame, and a few are on their way.
    const int64_t frames = LiveFrames(ordered.plan.classes[c].train);
    EXPECT_LE(ordered.pools[c], frames + 6) << "class " << c;
  }
}

template <typename Entry>
size_t StoredEntries(const std::vector<Entry>& entries) {
  size_t stored = 0;
  for (const Repeat<Entry>& repeat : Fold(entries)) stored += repeat.body.size();
  return stored;
}

// However many micro-batches there are, a fast stage keeps pace with a slow one behind it.
TEST(OrderTest, ASlowLastStageHoldsTheOthersBack) {
  for (bool collectives : {false, true}) {
    Pipeline pipeline{ScheduleKind::kOneFOneB, 4, 1, 16, kEven, collectives};
    pipeline.slow_end = true;
    const Ordered few = MustOrder(pipeline);
    pipeline.micro_batches = 512;
    const Ordered many = MustOrder(pipeline);
    EXPECT_EQ(many.pools, few.pools);
    for (const PlanClass& c : many.plan.classes) {
      for (const Program* program : {&c.train, &c.eval}) {
        EXPECT_LT(StoredEntries(program->compute), 64u) << "class " << c.coordinate;
        EXPECT_LT(StoredEntries(program->transfers), 64u) << "class " << c.coordinate;
      }
    }
    EXPECT_EQ(CheckOrder(many.plan, true), "");
  }
}

int64_t ReadersCount(const Program& program) {
  size_t count = program.compute.size() + program.transfers.size();
  for (const Action& action : program.compute) count += action.waits.size();
  for (const Transfer& transfer : program.transfers) {
    count += transfer.after.size() + transfer.after_transfers.size();
  }
  return static_cast<int64_t>(count);
}

// A plan of as many actions as a schedule may have is not too long to be read.
TEST(OrderTest, NoScheduleGivesMoreThanReadersTake) {
  for (ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
    for (const Costs& costs : {kFree, kEven, kSlowNetwork}) {
      Pipeline pipeline{kind, 8, kind == ScheduleKind::kInterleaved ? 2 : 1, 128, costs, true};
      const Ordered ordered = MustOrder(pipeline);
      int64_t entries = 0;
      for (const PlanClass& c : ordered.plan.classes) {
        entries += ReadersCount(c.train) + ReadersCount(c.eval);
      }
      const int64_t actions = 2 * pipeline.pp * pipeline.vp * pipeline.micro_batches;
      EXPECT_LE(entries * (kMaxScheduleActions / actions), kMaxPlanEntries) << NameOf(pipeline);
    }
  }
}

TEST(OrderTest, TheSameInputGivesTheSameLists) {
  const Pipeline pipeline{ScheduleKind::kInterleaved, 4, 2, 8, kEven, true};
  const Ordered a = MustOrder(pipeline);
  const Ordered b = MustOrder(pipeline);
  EXPECT_EQ(a.step.makespan_ns, b.step.makespan_ns);
  for (size_t c = 0; c < a.plan.classes.size(); ++c) {
    const std::vector<Transfer>& first = a.plan.classes[c].train.transfers;
    const std::vector<Transfer>& second = b.plan.classes[c].train.transfers;
    ASSERT_EQ(first.size(), second.size());
    for (size_t t = 0; t < first.size(); ++t) {
      EXPECT_EQ(first[t].address, second[t].address);
      EXPECT_EQ(first[t].ref.micro_batch, second[t].ref.micro_batch);
      EXPECT_EQ(first[t].issued, second[t].issued);
    }
  }
}

}  // namespace
}  // namespace mgc
