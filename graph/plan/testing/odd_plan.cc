#include "graph/plan/testing/odd_plan.h"

#include <utility>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/testing/graph_difference.h"
#include "graph/plan/instr_collective.h"

namespace mgc {
namespace {

const TensorType kType{DType::kF32, {{8, "batch", 1}, {6, "a b", 2}}};

constexpr int64_t kMicroBatches = 8;
constexpr int64_t kStream = 192;  // bytes of kType

// Formals and slots of odd names, every kind of instruction, a bucket of two.
Segment OddSegment() {
  Segment segment;
  segment.name = "layer forward";
  segment.formals = {{}, {Region::kGrads, "he ad:"}, {Region::kFrame, ""}};
  const Sharding whole = Sharding::Whole(2);
  Sharding owed = whole;
  owed.sum = {0};
  Sharding stored = Sharding::Whole(1);
  stored.storage = {1};
  Sharding stored_owed = stored;
  stored_owed.sum = {0};
  const TensorType tokens{DType::kI64, {{3, "", 1}, {2, "", 1}}};
  const TensorType vector{DType::kF32, {{4, "", 1}}};
  segment.slots = {{"layers.*.x", kType, whole, 2, 0, kStream},
                   {"layers.*.x", kType, owed, 1, 64, kStream},
                   {"\"y\"", tokens, whole, 2, 256, 48},
                   {"z", vector, stored_owed, 0, 0, 16},
                   {"z", vector, stored, 0, 64, 16}};
  segment.num_collectives = 1;
  segment.transient_bytes = 4096;
  segment.workspace_bytes = 17;
  Instr load;
  load.kind = InstrKind::kLoad;
  load.outputs = {2};
  load.attrs = {{"name", "tokens"}};
  Instr compute;
  compute.op = FindOp("gelu");
  compute.inputs = {1};
  compute.outputs = {0};
  compute.phase = Phase::kBackward;
  compute.loc = {1, 3, 4};
  compute.origin = "why\n";
  Instr start;
  start.kind = InstrKind::kStart;
  start.op = FindOp("all_reduce");
  start.inputs = {1, 3};
  start.outputs = {0, 4};
  start.attrs = {{"label", "f"}};
  start.collective = 0;
  Instr wait;
  wait.kind = InstrKind::kWait;
  wait.collective = 0;
  wait.phase = Phase::kUpdate;
  segment.instrs = {load, compute, start, wait};
  return segment;
}

// A segment without a name, and one of the same name as another: both go by their number.
Segment BoundarySegment(Region from, Region to) {
  Segment segment;
  segment.formals = {{}, {from, ""}, {to, ""}};
  segment.slots = {{"in", kType, Sharding::Whole(2), 1, 0, kStream},
                   {"out", kType, Sharding::Whole(2), 2, 0, kStream}};
  Instr sum;
  sum.kind = InstrKind::kStart;
  sum.op = FindOp("all_reduce");
  sum.inputs = {0};
  sum.outputs = {0};
  SetJoinsEnds(&sum);
  sum.collective = 0;
  segment.instrs = {sum};
  segment.num_collectives = 1;
  return segment;
}

ParamBlock OddBlock() {
  ParamEntry entry;
  entry.name = "layers.*.w";
  entry.type = kType;
  entry.sharding = Sharding::Whole(2);
  entry.state_sharding = entry.sharding;
  entry.state_sharding.storage = {0};
  entry.init = {{"init", "normal"}, {"std", 0.02}};
  entry.param_offset = 64;
  entry.gradient_base = {Region::kGrads, "head"};
  entry.gradient_offset = 128;
  entry.states = {{"m", 192}, {"v", 256}};
  const NamedTensor kept = {
      "layers.*.k_kept", {DType::kF32, {{4, "batch", 1}}}, Sharding::Whole(1), 64};
  return {"layer", {entry, entry}, {kept, kept}, 1000, 2000, 3000};
}

// Slots of the boundary pool.
int64_t PoolAt(int64_t slot) { return 8192 + slot * 256; }

// One action with what it sends or receives; `forward` or backward.
void AddAction(int coordinate, bool forward, int64_t m, bool eval, Program* program) {
  Action action;
  action.ref = {forward ? ActionKind::kForward : ActionKind::kBackward, 0, m};
  action.frame = 1024 + m % 2 * 512;
  Transfer transfer;
  transfer.bytes = kStream;
  transfer.peer = 1 - coordinate;
  transfer.anchor = action.ref;
  transfer.issued = 1;
  if (forward == (coordinate == 0)) {
    (forward ? action.output : action.grad_output) = PoolAt(0);
    transfer.address = PoolAt(0);
    transfer.ref = {forward ? TransferKind::kSendForward : TransferKind::kSendBackward, 0, m};
  } else {
    const int64_t slot = PoolAt(1 + m % 3);
    (forward ? action.input : action.grad_input) = slot;
    transfer.address = slot;
    transfer.ref = {forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward, 0, m};
    if (m >= 3) {
      transfer.after = {{forward && !eval ? ActionKind::kBackward : action.ref.kind, 0, m - 3}};
      transfer.after_transfers = {{transfer.ref.kind, 0, m - 1}};
    }
    action.waits = {transfer.ref};
  }
  if (!forward && coordinate == 1) action.input = PoolAt(1 + m % 3);
  program->compute.push_back(action);
  program->transfers.push_back(transfer);
}

// Working copies on the second class; warm-up, a steady state in a ring of two frames and one of
// three inboxes, the end.
Program OddProgram(int coordinate, bool eval) {
  Program program;
  if (!eval && coordinate == 1) {
    Action prepare;
    prepare.ref.kind = ActionKind::kPrepare;
    program.compute.push_back(prepare);
  }
  const int64_t ahead = eval ? kMicroBatches : 1 - coordinate;
  for (int64_t m = 0; m < kMicroBatches + ahead; ++m) {
    if (m < kMicroBatches) AddAction(coordinate, true, m, eval, &program);
    if (!eval && m >= ahead) AddAction(coordinate, false, m - ahead, eval, &program);
  }
  Action update;
  update.ref.kind = ActionKind::kUpdate;
  update.input = 64;
  program.compute.push_back(update);
  return program;
}

Chunk OddChunk(int coordinate) {
  const Call odd{
      0, kNoLayer, {{BaseKind::kAbsolute, 128}, {BaseKind::kAbsolute, 0}, {BaseKind::kFrame, 64}}};
  const auto edge = [](int segment, BaseKind from, BaseKind to) {
    return Call{segment, kEmbeddingLayer, {{BaseKind::kAbsolute, 0}, {from, 0}, {to, 0}}};
  };
  const bool first = coordinate == 0;
  Chunk chunk;
  chunk.stage = coordinate;
  chunk.first_layer = first ? 0 : 2;
  chunk.num_layers = first ? 2 : 1;
  chunk.has_embedding = first;
  chunk.has_head = !first;
  chunk.forward = {odd, edge(1, first ? BaseKind::kFrame : BaseKind::kInput,
                             first ? BaseKind::kOutput : BaseKind::kFrame)};
  chunk.backward = {edge(2, first ? BaseKind::kGradInput : BaseKind::kInput,
                         first ? BaseKind::kFrame : BaseKind::kGradOutput),
                    odd};
  chunk.frame_bytes = 448;
  return chunk;
}

PlanClass OddClass(int coordinate) {
  PlanClass rank_class;
  rank_class.coordinate = coordinate;
  rank_class.blocks = {{0, 3, true, 8, 16, 24}, {1, kEmbeddingLayer, false, 32, 40, 48}};
  rank_class.chunks = {OddChunk(coordinate)};
  rank_class.eval_chunks = {OddChunk(coordinate)};
  rank_class.eval_chunks[0].backward.clear();
  const Call call{
      0, 3, {{BaseKind::kAbsolute, 8}, {BaseKind::kAbsolute, 128}, {BaseKind::kAbsolute, 256}}};
  rank_class.chunks[0].last_backward = rank_class.chunks[0].backward;
  rank_class.chunks[0].last_backward.push_back(call);
  if (coordinate == 1) rank_class.chunks[0].prepare = {call, call};
  rank_class.update = {call};
  rank_class.update[0].running = 0;
  rank_class.eval_update = {call, call, call};
  rank_class.train = OddProgram(coordinate, false);
  rank_class.eval = OddProgram(coordinate, true);
  rank_class.zeroed = {{0, 64}, {64, 65}};
  rank_class.eval_zeroed = {{128, 192}};
  rank_class.global_bytes = 11;
  rank_class.eval_global_bytes = 12;
  rank_class.scalars = {{"lr", 8}};
  rank_class.carried = {{"loss_scale", 40}, {"od d", 48}};
  rank_class.reports = {{"lo\"ss", 16}, {"", 24}};
  rank_class.eval_reports = {{"loss", 32}};
  rank_class.results = {{"lo\"gits", {DType::kF32, {{4, "batch", 1}}}, Sharding::Whole(1), 64}};
  rank_class.memory = {1, 2, 3, 4, 5, 6, 7, 16384, 24};
  return rank_class;
}

}  // namespace

Plan OddPlan() {
  Plan plan;
  plan.name = "odd plan";
  plan.options = {{"tp", "2"}, {"note", "a \"b\""}};
  absl::StatusOr<Mesh> mesh = Mesh::Create({{"tp", 2}, {"dp", 3}, {"pp", 2}});
  MGC_CHECK(mesh.ok()) << mesh.status().ToString();
  plan.mesh = *mesh;
  plan.machine = MachinePresets()[1];
  plan.machine.cores = 3;
  plan.machine.compute[0].points = {{1e6, 0.25}, {1e9, 0.5}};
  plan.machine.tiers[0].points = {{1e4, 0.25}, {1e6, 0.5}};
  plan.machine.ops = {{"gelu", "bf16", 4.5}};
  plan.micro_batch_size = 1;
  plan.global_batch_size = 24;
  plan.num_micro_batches = kMicroBatches;
  plan.seq_length = 2;
  plan.vocab = 257;
  plan.gradient_sums = DType::kBF16;
  plan.model = OddGraph();
  plan.segments = {OddSegment(), BoundarySegment(Region::kInput, Region::kOutput),
                   BoundarySegment(Region::kGradInput, Region::kGradInput)};
  plan.segments[2].name = "layer forward";
  plan.blocks = {OddBlock(), {"empty", {}, {}, 1, 2, 3}};
  plan.classes = {OddClass(0), OddClass(1)};
  plan.stages = {{0, 0}, {1, 0}};
  plan.predicted_step_ns = 123456789012345;
  plan.notes = {"first", "second \xFF"};
  plan.verifier = 1;
  return plan;
}

}  // namespace mgc
