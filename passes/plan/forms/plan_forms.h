// A plan in the making: what it is after stage, after schedule and after order. Each pass adds what
// it decides; allocate turns the last form into a Plan (graph/plan/plan.h), the only one with
// addresses.
//
//   StagedPlan     what runs: segments, who calls them, and for every value a region and an offset
//   ScheduledPlan  which forward and backward of a class runs when
//   OrderedPlan    the lists of every class, with numbers of boundary slots where a plan has bytes
//
// Segments and blocks have their final type from the start; offsets of transient slots, and bytes
// of transients and workspace, are zero until allocate. What must hold of each form is in
// passes/plan/forms/check_forms.h.

#ifndef MGC_PASSES_PLAN_FORMS_PLAN_FORMS_H_
#define MGC_PASSES_PLAN_FORMS_PLAN_FORMS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/axis.h"
#include "graph/types/mesh.h"

namespace mgc {

// --- After stage ---------------------------------------------------------------------------------

// Where a formal points: into the region that it names, or to a place that the action brings.
enum class StagedBase : uint8_t { kRegion, kFrame, kInput, kOutput, kGradInput, kGradOutput };

struct StagedBinding {
  StagedBase base = StagedBase::kRegion;
  int64_t offset = 0;  // bytes behind it
};

struct StagedCall {
  int segment = 0;
  int layer = kNoLayer;
  std::vector<StagedBinding> bindings;  // one per formal
  int running = kAnyRunning;            // as in Call
};

using StagedChunk = ChunkOf<StagedCall>;

// A number the user sees, a scalar the runtime provides, or what a step leaves for the next: an f64
// in the region of globals.
struct NamedOffset {
  std::string name;
  int64_t offset = 0;
};

// A tensor that a step leaves for whoever runs it, in the region of globals.
struct StagedResult {
  std::string name;
  TensorType type;
  Sharding sharding;
  int64_t offset = 0;
};

// What one class runs in a training step, or to evaluate (forward only).
struct StagedStep {
  std::vector<StagedChunk> chunks;
  std::vector<StagedCall> update;
  int64_t copy_bytes = 0;           // working copies of parameters, those in turn among them
  int64_t owed_bytes = 0;           // gradients on their way into pieces
  int64_t global_bytes = 0;         // values of the whole step
  int64_t zeroed_global_bytes = 0;  // their beginning, zero at the step's start
  std::vector<NamedOffset> scalars;
  std::vector<NamedOffset> carried;  // from step to step
  std::vector<NamedOffset> reports;
  std::vector<StagedResult> results;  // of the stages of the class
};

// A block held by a class for one layer.
struct StagedBlock {
  int block = 0;
  int layer = 0;
  bool owner = true;  // false: a copy of parameters another stage counts and reports (tied weights)
};

struct StagedClass {
  int coordinate = 0;  // along pp
  std::vector<StagedBlock> blocks;
  StagedStep train;
  StagedStep eval;
};

struct StagedPlan {
  Mesh mesh;
  std::vector<Segment> segments;
  std::vector<ParamBlock> blocks;
  std::vector<StagedClass> classes;  // by pp coordinate
  std::vector<StagePlace> stages;    // where each stage lives
  std::vector<std::string> notes;    // for the user
};

// Every call of a step.
template <class Fn>
void ForEachCall(const StagedStep& step, const Fn& fn) {
  for (const StagedChunk& chunk : step.chunks) {
    for (const auto* calls : ListsOf(chunk)) {
      for (const StagedCall& call : *calls) fn(call);
    }
  }
  for (const StagedCall& call : step.update) fn(call);
}
// Of a class, in training and evaluation.
template <class Fn>
void ForEachCall(const StagedClass& staged, const Fn& fn) {
  ForEachCall(staged.train, fn);
  ForEachCall(staged.eval, fn);
}

// Whether a training step has backwards, and whether there is an evaluation: neither where the
// model is asked (graph/ir/results.h).
bool HasBackward(const StagedPlan& staged);
bool HasEvaluation(const StagedPlan& staged);

// Size of the residual stream and of its gradient on one rank, where the layers of a class hand
// them on; 0 where none does.
int64_t StreamBytes(const std::vector<Segment>& segments, const StagedClass& staged);

// How far the calls of a chunk reach behind a place that an action brings; of the bundle there, its
// bytes. 0: they do not use it. A forward's input may be read in backward alone.
int64_t BytesBehind(const std::vector<Segment>& segments, const StagedChunk& chunk,
                    StagedBase base);

// --- After schedule ------------------------------------------------------------------------------

enum class ScheduleActionKind : uint8_t {
  kForward,         // F
  kBackward,        // B = I and W in one
  kInputGradient,   // I
  kWeightGradient,  // W
};

// An entry of a schedule. It says the stage, as published schedules do, so that lists can be read
// and compared without a plan; an ActionRef (graph/plan/plan.h) says the chunk of the class that
// runs it. ComputeList (passes/plan/forms/compute_list.h) makes the second of the first. Of the
// kinds, a plan runs whole backwards alone (scheduled_c1).
struct ScheduleAction {
  int32_t stage = 0;
  ScheduleActionKind kind = ScheduleActionKind::kForward;
  int32_t micro_batch = 0;
};

inline bool operator==(const ScheduleAction& a, const ScheduleAction& b) {
  return a.stage == b.stage && a.kind == b.kind && a.micro_batch == b.micro_batch;
}

struct PipelineSchedule {
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t micro_batches = 1;
  std::vector<std::vector<ScheduleAction>> lists;  // by pipeline rank, each in order
};

// PyTorch's words for an action, `<stage><kind><micro-batch>`: `0F3`, `2B1`.
std::string ToString(const ScheduleAction& action);

struct ScheduledPlan {
  StagedPlan staged;
  PipelineSchedule schedule;
};

// --- After order ---------------------------------------------------------------------------------

// An entry of the compute list. Places are slots of the class' boundary pool; -1 where the action
// has none.
struct OrderedAction {
  ActionRef ref;
  int64_t input = -1;
  int64_t output = -1;
  int64_t grad_input = -1;
  int64_t grad_output = -1;
  std::vector<TransferRef> waits;
};

// An entry of the communication list; all but `slot` as in Transfer.
struct OrderedTransfer {
  TransferRef ref;
  int64_t slot = 0;  // of the class' boundary pool
  int64_t bytes = 0;
  int peer = 0;
  ActionRef anchor;
  int issued = 0;
  std::vector<ActionRef> after;
  std::vector<TransferRef> after_transfers;
};

struct OrderedProgram {
  std::vector<OrderedAction> compute;
  std::vector<OrderedTransfer> transfers;
};

// How long a class waits for collectives with nothing to compute, by the axes they go over.
using ExposedTime = std::map<AxisSet, int64_t>;

// Where the simulated training step of a class goes.
struct ClassTime {
  int64_t busy_ns = 0;    // its compute queue
  int64_t update_ns = 0;  // of that, the update
  ExposedTime exposed;
  int64_t transfers_ns = 0;  // it waits for a boundary tensor that is made and has not arrived
};

struct OrderedClass {
  OrderedProgram train;
  OrderedProgram eval;
  int64_t pool = 0;  // boundary slots
  ClassTime time;
};

struct OrderedPlan {
  StagedPlan staged;
  std::vector<OrderedClass> classes;  // by pp coordinate
  int64_t micro_batches = 1;
  int64_t predicted_step_ns = 0;
  int64_t makespan_ns = 0;     // of the simulated step: predicted, but where ranks share cores
  int64_t counted_rounds = 0;  // of micro-batches, that were not simulated (OrderScope)
};

// Bytes of every boundary slot of a class: of the largest bundle that an action, of training or
// evaluation, takes or leaves there, rounded up to the slot alignment. Slots are
// of the pool (ordered_c1).
std::vector<int64_t> SlotBytes(const std::vector<Segment>& segments, const StagedClass& staged,
                               const OrderedClass& ordered);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_FORMS_PLAN_FORMS_H_
