// The plan: what the compiler hands to the runtime, and the only thing they share.
//
// One program per *rank class* (the ranks of one pipeline coordinate), not per rank: ranks of a
// class run the same instructions at the same addresses; what differs follows from mesh
// coordinates.
//
//   Segment   an instruction list over slots, stored once for all layers and classes that run it
//   Call      a segment for one layer of one class: addresses for the segment's formals
//   Chunk     the calls that make one stage's forward and backward, and what they stand on
//   Action    a chunk's forward or backward for one micro-batch, the making of its working copies,
//             or the step's update
//   Transfer  one boundary tensor sent or received; with all collectives in one order per rank
//
// Everything is decided here: order, addresses, waits. Invariants (checked by
// graph/plan/plan_check.h): labels plan_c1, plan_c2, ... in docs/plan.md.

#ifndef MGC_GRAPH_PLAN_PLAN_H_
#define MGC_GRAPH_PLAN_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/plan/formal.h"
#include "graph/types/attrs.h"
#include "graph/types/layer_names.h"
#include "graph/types/machine.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

inline constexpr int kPlanVersion = 5;
inline constexpr int64_t kSlotAlignment = 64;  // bytes
// The next multiple of it.
inline int64_t AlignUp(int64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

// --- Segments ------------------------------------------------------------------------------------

// A tensor an instruction reads or writes: `offset` bytes behind the address of formal `formal`.
struct Slot {
  std::string name;  // a pattern (graph/types/layer_names.h): `layers.*.mlp.up`
  TensorType type;   // logical
  Sharding sharding;
  int formal = 0;
  int64_t offset = 0;
  int64_t bytes = 0;  // room on one rank
};

enum class InstrKind : uint8_t {
  kCompute,  // runs `op`'s kernel
  kLoad,     // fills a slot with this rank's tile of data input attrs["name"]
  kStart,    // hands collective number `collective` of this segment to the communication queue
  kWait,     // until that collective is done
};

struct Instr {
  InstrKind kind = InstrKind::kCompute;
  const OpDef* op = nullptr;  // of kLoad and kWait: null
  Attrs attrs;                // text attributes are patterns
  std::vector<int> inputs;    // slots
  std::vector<int> outputs;
  int collective = -1;  // kStart, kWait: counted from 0 within the segment
  Phase phase = Phase::kForward;
  SourceLoc loc;
  std::string origin;
};

struct Segment {
  std::string name;             // `layer.forward`, `head.backward`, ...
  std::vector<Formal> formals;  // base addresses; formal 0 is kTransient
  std::vector<Slot> slots;
  std::vector<Instr> instrs;
  int num_collectives = 0;
  int64_t transient_bytes = 0;
  int64_t workspace_bytes = 0;  // the largest WorkspaceBound of its instructions
};

// A collective of a segment may serve many parameters at once (a bucket): inputs[i] becomes
// outputs[i], each by itself, so that no split point depends on a neighbour.

// A tensor that a step leaves (graph/ir/results.h), as the ranks of a class have it.
struct NamedTensor {
  std::string name;
  TensorType type;
  Sharding sharding;
  int64_t address = 0;  // or how far behind the block's states it lies
};
inline bool operator==(const NamedTensor& a, const NamedTensor& b) {
  return a.name == b.name && a.type == b.type && a.sharding == b.sharding && a.address == b.address;
}

// --- Parameters ----------------------------------------------------------------------------------

// What an optimizer keeps of a parameter: one tensor of the parameter's type, among the block's
// states.
struct ParamState {
  std::string name;  // `m` (graph/ir/optimizers.h)
  int64_t offset = 0;
};
inline bool operator==(const ParamState& a, const ParamState& b) {
  return a.name == b.name && a.offset == b.offset;
}

// One parameter of a block, with all that belongs to it. Offsets are relative to the block's bases.
struct ParamEntry {
  std::string name;  // a pattern: `layers.*.mlp.up`
  TensorType type;
  Sharding sharding;
  Sharding state_sharding;  // of the gradient too
  Attrs init;
  int64_t param_offset = 0;
  // Where the step's sum of gradients stands when the update has run: behind `gradient_base`,
  // gradients of this or another block; kTransient where the parameter is not trained.
  Formal gradient_base;
  int64_t gradient_offset = 0;
  std::vector<ParamState> states;  // in the optimizer's order; none where it is not trained
};

// Null when the optimizer keeps none of that name.
const ParamState* FindState(const ParamEntry& entry, absl::string_view name);

// The parameters of one kind of layer.
struct ParamBlock {
  std::string name;  // `embedding`, `layer`, `head`
  std::vector<ParamEntry> entries;
  // Among its states, what steps of a model that is asked leave for the next; names are patterns.
  std::vector<NamedTensor> kept;
  int64_t param_bytes = 0;
  int64_t grad_bytes = 0;
  int64_t state_bytes = 0;
};

// A block held by a class for one layer.
struct HeldBlock {
  int block = 0;
  int layer = 0;      // whose parameters these are
  bool owner = true;  // false: a copy of parameters another stage counts and reports (tied weights)
  int64_t param_base = 0;
  int64_t grad_base = 0;
  int64_t state_base = 0;
};

// --- Programs ------------------------------------------------------------------------------------

// Where a formal points: an address, or an offset from one the action brings.
enum class BaseKind : uint8_t { kAbsolute, kFrame, kInput, kOutput, kGradInput, kGradOutput };

struct Binding {
  BaseKind base = BaseKind::kAbsolute;
  int64_t offset = 0;
};

// A collective that its segment does not wait for runs in the background of later calls. A call
// begins when all of these that its class has started before it are done but the last `running`.
inline constexpr int kAnyRunning = -1;  // it waits for none

struct Call {
  int segment = 0;
  int layer = kNoLayer;
  std::vector<Binding> bindings;  // one per formal
  int running = kAnyRunning;
};

// The calls of one stage, of a plan or of one in the making (passes/plan/forms/plan_forms.h).
template <typename CallType>
struct ChunkOf {
  int stage = 0;  // along the whole pipeline, 0 first
  int first_layer = 0;
  int num_layers = 0;
  bool has_embedding = false;
  bool has_head = false;
  std::vector<CallType> prepare;  // makes working copies of parameters, before the first forward
  std::vector<CallType> forward;
  std::vector<CallType> backward;
  // Of the last micro-batch: the same, with the starts of the gradients' reductions in between.
  // Empty: there is nothing to reduce, and `backward` serves.
  std::vector<CallType> last_backward;
  int64_t frame_bytes = 0;  // what forward keeps for backward, per micro-batch
};
using Chunk = ChunkOf<Call>;

// Forward and backward run once for every micro-batch of a step, the others once.
enum class ActionKind : uint8_t { kPrepare, kForward, kBackward, kUpdate };
absl::string_view LetterOf(ActionKind kind);  // P, F, B, U
inline bool IsOfMicroBatch(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kBackward;
}

// The lists of a chunk: first by the kind of action that runs them, then that of the last backward.
inline constexpr size_t kNumChunkLists = 4;
inline constexpr size_t kLastBackwardList = 3;
template <typename CallType>
std::array<const std::vector<CallType>*, kNumChunkLists> ListsOf(const ChunkOf<CallType>& chunk) {
  return {&chunk.prepare, &chunk.forward, &chunk.backward, &chunk.last_backward};
}
template <typename CallType>
std::array<std::vector<CallType>*, kNumChunkLists> ListsOf(ChunkOf<CallType>* chunk) {
  return {&chunk->prepare, &chunk->forward, &chunk->backward, &chunk->last_backward};
}
enum class TransferKind : uint8_t { kSendForward, kRecvForward, kSendBackward, kRecvBackward };
absl::string_view WordOf(TransferKind kind);  // SEND_F, ...

// An action or a transfer of one rank.
struct ActionRef {
  ActionKind kind = ActionKind::kForward;
  int chunk = 0;  // index into PlanClass::chunks
  int64_t micro_batch = 0;
};
struct TransferRef {
  TransferKind kind = TransferKind::kSendForward;
  int chunk = 0;
  int64_t micro_batch = 0;
};
// Which of its chunk's lists an action runs that is no update.
template <typename CallType>
size_t ListOf(const ChunkOf<CallType>& chunk, const ActionRef& ref, int64_t micro_batches) {
  const bool last = ref.kind == ActionKind::kBackward && ref.micro_batch == micro_batches - 1;
  return last && !chunk.last_backward.empty() ? kLastBackwardList : static_cast<size_t>(ref.kind);
}
// Their names in the words of schedules, with the stage that the chunk is of: `3F2`, `3RECV_F2`.
std::string NameOf(const ActionRef& ref, int stage);
std::string NameOf(const TransferRef& ref, int stage);
// `chunks` are those that the reference counts in; a chunk that they lack is named by its number.
template <typename Ref, typename CallType>
std::string NameOf(const Ref& ref, const std::vector<ChunkOf<CallType>>& chunks) {
  const bool exists = ref.chunk >= 0 && static_cast<size_t>(ref.chunk) < chunks.size();
  return NameOf(ref, exists ? chunks[static_cast<size_t>(ref.chunk)].stage : ref.chunk);
}

// One entry of the compute list.
struct Action {
  ActionRef ref;
  // Addresses; -1 where the action has none.
  int64_t frame = -1;
  int64_t input = -1;
  int64_t output = -1;
  int64_t grad_input = -1;
  int64_t grad_output = -1;
  std::vector<TransferRef> waits;  // before its first instruction
};

// One entry of the communication list. In the rank's one order of communication it stands after
// `issued` collectives of `anchor` (and after everything listed before it).
struct Transfer {
  TransferRef ref;
  int64_t address = 0;
  int64_t bytes = 0;
  int peer = 0;  // class of the other end; other coordinates are equal
  ActionRef anchor;
  int issued = 0;
  // What must be complete before it may start: last users of the memory it writes.
  std::vector<ActionRef> after;
  std::vector<TransferRef> after_transfers;
};

// One step of one class.
struct Program {
  std::vector<Action> compute;
  std::vector<Transfer> transfers;
};

// A number the user sees, or a scalar the runtime provides: an address of an f64.
struct NamedAddress {
  std::string name;
  int64_t address = 0;
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// Bytes of a class by purpose; peak = highest end address in use, workspace apart.
struct MemoryUse {
  int64_t params = 0;
  int64_t grads = 0;
  int64_t states = 0;
  int64_t copies = 0;      // working copies of parameters
  int64_t frames = 0;      // activations kept for backward
  int64_t boundaries = 0;  // inboxes and outboxes
  int64_t transient = 0;
  int64_t peak = 0;
  // Of each thread of a processor, or of the rank's GPU: the largest of the segments that the class
  // calls.
  int64_t workspace = 0;
};

struct PlanClass {
  int coordinate = 0;  // along pp
  std::vector<HeldBlock> blocks;
  std::vector<Chunk> chunks;       // of the training step
  std::vector<Chunk> eval_chunks;  // forward only, no dropout
  std::vector<Call> update;
  std::vector<Call> eval_update;  // pays what the loss owes
  Program train;
  Program eval;
  std::vector<Range> zeroed;       // at the start of a training step
  std::vector<Range> eval_zeroed;  // of an evaluation
  int64_t global_bytes = 0;        // values of the whole step
  int64_t eval_global_bytes = 0;
  std::vector<NamedAddress> scalars;
  // Numbers that a training step leaves for the next: of one whose loss is scaled kCarriedNames
  // (graph/ir/step_names.h). Nothing else writes them.
  std::vector<NamedAddress> carried;
  std::vector<NamedAddress> reports;
  std::vector<NamedAddress> eval_reports;
  std::vector<NamedTensor> results;  // of the training step, of the stages of this class
  MemoryUse memory;
};

// --- The plan ------------------------------------------------------------------------------------

// Where a stage of the pipeline lives, in training and evaluation alike.
struct StagePlace {
  int rank_class = 0;  // index into Plan::classes
  int chunk = 0;       // index into that class' chunks
};

// What was asked for, as flags, for people and for `mgc-plan diff`.
using PlanOptions = std::vector<std::pair<std::string, std::string>>;

struct Plan {
  std::string name;
  PlanOptions options;
  Mesh mesh;
  Machine machine;
  int64_t micro_batch_size = 0;   // samples per data-parallel rank
  int64_t global_batch_size = 0;  // samples per step
  int64_t num_micro_batches = 0;
  int64_t seq_length = 0;
  int64_t vocab = 0;
  // The element type in which gradients travel when they are summed over ranks that hold other data
  // (PaysOverData): f32, or narrower.
  DType gradient_sums = DType::kF32;
  Graph model;  // logical; source of types, locations and of later proofs
  std::vector<Segment> segments;
  std::vector<ParamBlock> blocks;
  std::vector<PlanClass> classes;  // by pp coordinate
  std::vector<StagePlace> stages;  // along the pipeline; each chunk of each class once
  int64_t predicted_step_ns = 0;
  std::vector<std::string> notes;
  // Version of the verifier that has proved this very plan (graph/verify/verify.h), 0: none. Kept
  // in the header of a file of bytes only; a plan in text form, which anyone may edit, is not
  // proved.
  int verifier = 0;
};

// What an action of a class runs, in training or in an evaluation.
const std::vector<Call>& CallsOf(const Plan& plan, const PlanClass& plan_class, bool eval,
                                 const ActionRef& ref);

// Whether a training step has backwards, and the plan an evaluation: neither where the model is
// asked (graph/ir/results.h).
bool HasBackward(const Plan& plan);
bool HasEvaluation(const Plan& plan);

// Whether a step scales its loss: it carries the scale.
bool ScalesLoss(const Plan& plan);

// The calls of a chunk's last backward that its other backwards lack: they start reductions.
std::vector<Call> ReductionsOf(const Chunk& chunk);

// Bytes of scratch that the kernel of an instruction may use: what its op allows for the tiles of
// one rank (OpDef::workspace). 0 for instructions that run no kernel.
int64_t WorkspaceBound(const Segment& segment, const Instr& instr, const Mesh& mesh,
                       KernelHost host);
// The largest of a segment's instructions.
int64_t WorkspaceBound(const Segment& segment, const Mesh& mesh, KernelHost host);

// Index of an axis' coordinate for the class: the pp axis of the mesh, or -1 without pipeline.
AxisId PipelineAxis(const Mesh& mesh);

// The class of a rank of such a mesh.
int ClassOfRank(const Mesh& mesh, int64_t rank);

// The address a formal is bound to during an action, in bytes of the rank's arena.
inline int64_t AddressOf(const Binding& binding, const Action& action) {
  switch (binding.base) {
    case BaseKind::kAbsolute:
      return binding.offset;
    case BaseKind::kFrame:
      return action.frame + binding.offset;
    case BaseKind::kInput:
      return action.input + binding.offset;
    case BaseKind::kOutput:
      return action.output + binding.offset;
    case BaseKind::kGradInput:
      return action.grad_input + binding.offset;
    case BaseKind::kGradOutput:
      return action.grad_output + binding.offset;
  }
  return -1;
}

// Two neighbouring stages on one class hand over in place, without a transfer: the action that
// takes what `ref`, of number `stage` of `stages`, leaves, or (`next` false) the one that leaves
// what `ref` takes. None where the neighbour is on another class, or there is none.
absl::optional<ActionRef> NeighbourInPlace(const std::vector<StagePlace>& stages, int stage,
                                           const ActionRef& ref, bool next);
// The same of one of `chunks`.
template <typename CallType>
absl::optional<ActionRef> NeighbourInPlace(const std::vector<StagePlace>& stages,
                                           const std::vector<ChunkOf<CallType>>& chunks,
                                           const ActionRef& ref, bool next) {
  return NeighbourInPlace(stages, chunks[static_cast<size_t>(ref.chunk)].stage, ref, next);
}

// The block of a class that a formal names in a call for `layer`: the one called `block`; where
// that is empty, the layer's own, and where it is a number, that layer's own, never one of tied
// parameters. Null: it holds none.
const HeldBlock* FindHeld(const Plan& plan, const PlanClass& plan_class, absl::string_view block,
                          int layer);
// Where the part of a block begins that a region (IsOfBlock) is in.
int64_t BlockBase(const HeldBlock& held, Region region);

// Where a class keeps the gradient of a parameter of block `held` after an update; -1 when it does
// not. Tied parameters have a block `tied` of their own, their gradients may lie in those
// of the layers.
int64_t GradientAddress(const Plan& plan, const PlanClass& plan_class, const HeldBlock& held,
                        const ParamEntry& entry);

// What a step of the class zeroes at its start.
const std::vector<Range>& ZeroedRanges(const PlanClass& plan_class, bool eval);

// Ranks of class `coordinate`.
std::vector<int64_t> RanksOfClass(const Plan& plan, int coordinate);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PLAN_H_
