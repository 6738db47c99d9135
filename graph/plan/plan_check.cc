// The plan as a whole, parameters and classes; segments and programs lie in files of their own.

#include "graph/plan/plan_check.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/ir/assemble.h"
#include "graph/ir/model_layers.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/step_names.h"
#include "graph/plan/data_input.h"
#include "graph/plan/instr_collective.h"
#include "graph/plan/plan_check_internal.h"

namespace mgc {
namespace {

constexpr int64_t kMaxMicroBatches = int64_t{1} << 32;
constexpr int64_t kMaxSamples = int64_t{1} << 48;

// That a parameter keeps what its optimizer does, and nothing where it is not trained.
void CheckStates(const ParamEntry& entry, const std::string& name, PlaceCheck* check) {
  std::vector<std::string> kept;
  for (const ParamState& state : entry.states) kept.push_back(state.name);
  std::vector<std::string> due;
  if (IsTrained(entry.init)) due = StatesOf(OptimizerOf(entry.init));
  check->Require(kept == due, "plan_c4", name, ": it keeps the states {",
                 EscapeBytes(absl::StrJoin(kept, ", ")), "}, its optimizer {",
                 absl::StrJoin(due, ", "), "}");
}

// One that a step leaves lies within `end` bytes.
void CheckTensor(const Plan& plan, const NamedTensor& tensor, int64_t end, absl::string_view label,
                 const std::string& name, PlaceCheck* check) {
  if (!check->RequireOk(CheckSharding(tensor.type, tensor.sharding, plan.mesh), label, name))
    return;
  const int64_t bytes = NeededBytes(tensor.type, tensor.sharding, plan.mesh);
  check->Require(IsSize(tensor.address) && IsSize(bytes) && IsAligned(tensor.address) &&
                     tensor.address + bytes <= end,
                 label, name, " of ", bytes, " bytes at ", tensor.address, " reaches behind ", end);
}

void CheckBlock(const Plan& plan, const ParamBlock& block, Diagnostics* violations) {
  PlaceCheck check(absl::StrCat("block ", EscapeBytes(block.name)), violations);
  if (!check.Require(
          IsSize(block.param_bytes) && IsSize(block.grad_bytes) && IsSize(block.state_bytes),
          "plan_c7", "params, grads or states take negative bytes")) {
    return;
  }
  for (const ParamEntry& entry : block.entries) {
    const std::string name = EscapeBytes(entry.name);
    absl::Status status = CheckTypeBounds(entry.type);
    if (status.ok()) status = CheckShardingBounds(entry.type, entry.sharding, plan.mesh);
    if (status.ok()) status = CheckShardingBounds(entry.type, entry.state_sharding, plan.mesh);
    if (status.ok()) status = CheckInputAttrs(InputKind::kParam, entry.init);
    if (!check.RequireOk(status, "plan_c4", name)) continue;
    const int64_t param = NeededBytes(entry.type, entry.sharding, plan.mesh);
    const int64_t state = NeededBytes(entry.type, entry.state_sharding, plan.mesh);
    const auto lies = [&](absl::string_view what, int64_t offset, int64_t bytes, int64_t end) {
      check.Require(IsSize(offset) && IsSize(bytes) && IsAligned(offset) && offset + bytes <= end,
                    "plan_c4", name, ": its ", what, ", ", bytes, " bytes at ", offset,
                    ", is outside of the block's ", end);
    };
    lies("value", entry.param_offset, param, block.param_bytes);
    CheckStates(entry, name, &check);
    if (!IsTrained(entry.init)) continue;
    for (const ParamState& kept : entry.states) {
      lies(absl::StrCat("state ", EscapeBytes(kept.name)), kept.offset, state, block.state_bytes);
    }
    // Behind another block's base it may be; the calls that write it are checked.
    check.Require(IsSize(entry.gradient_offset) && IsAligned(entry.gradient_offset), "plan_c4",
                  name, ": its gradient is at ", entry.gradient_offset);
  }
  for (const NamedTensor& kept : block.kept) {
    const std::string name = absl::StrCat("kept `", EscapeBytes(kept.name), "`");
    CheckTensor(plan, kept, block.state_bytes, "plan_c4", name, &check);
  }
}

void CheckLayers(const Plan& plan, const std::vector<const Chunk*>& stages, PlaceCheck* check) {
  int64_t next = 0;
  int embeddings = 0;
  int heads = 0;
  for (const Chunk* chunk : stages) {
    embeddings += chunk->has_embedding ? 1 : 0;
    heads += chunk->has_head ? 1 : 0;
    if (chunk->num_layers == 0) continue;
    check->Require(chunk->num_layers > 0 && chunk->first_layer == next, "plan_c13", "stage ",
                   chunk->stage, " has ", chunk->num_layers, " layers from ", chunk->first_layer,
                   ", the next is ", next);
    next = int64_t{chunk->first_layer} + chunk->num_layers;
  }
  const ModelLayers model = LayersOf(plan.model);
  const auto fits = [](int stages, bool due) { return stages <= 1 && (stages == 1 || !due); };
  check->Require(next == plan.model.num_layers() && fits(embeddings, model.embedding) &&
                     fits(heads, model.head),
                 "plan_c13", "the stages hold ", next, " layers of ", plan.model.num_layers(), ", ",
                 embeddings, " embeddings and ", heads, " heads");
}

// Whether the table lists every chunk of every class once, and each chunk says which stage it is.
void CheckTable(const Plan& plan, bool eval, PlaceCheck* check) {
  const auto chunks_of = [&](size_t c) -> const std::vector<Chunk>& {
    return eval ? plan.classes[c].eval_chunks : plan.classes[c].chunks;
  };
  size_t chunks = 0;
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    chunks += chunks_of(c).size();
    check->Require(!chunks_of(c).empty(), "plan_c19", "class ", c, " has no chunk");
  }
  check->Require(plan.stages.size() == chunks, "plan_c19", plan.stages.size(),
                 " stages are placed, the classes have ", chunks, " chunks");
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlace& place = plan.stages[s];
    const bool exists = IsIndex(place.rank_class, plan.classes) &&
                        IsIndex(place.chunk, chunks_of(static_cast<size_t>(place.rank_class)));
    if (!exists) {
      check->Fail("plan_c19", "stage ", s, " is chunk ", place.chunk, " of class ",
                  place.rank_class, ", which does not exist");
      continue;
    }
    const Chunk& chunk =
        chunks_of(static_cast<size_t>(place.rank_class))[static_cast<size_t>(place.chunk)];
    check->Require(chunk.stage == static_cast<int64_t>(s), "plan_c19", "chunk ", place.chunk,
                   " of class ", place.rank_class, " says it is stage ", chunk.stage,
                   ", and is placed as stage ", s);
  }
}

// Together the stages hold every layer once, in order.
void CheckStages(const Plan& plan, Diagnostics* violations) {
  for (const bool eval : {false, true}) {
    PlaceCheck check(eval ? "evaluation" : "training", violations);
    std::vector<const Chunk*> stages;
    for (const StagePlace& place : plan.stages) {
      const PlanClass& rank_class = plan.classes[static_cast<size_t>(place.rank_class)];
      const std::vector<Chunk>& chunks = eval ? rank_class.eval_chunks : rank_class.chunks;
      stages.push_back(&chunks[static_cast<size_t>(place.chunk)]);
    }
    CheckLayers(plan, stages, &check);
  }
}

void CheckResults(const Plan& plan, const PlanClass& rank_class, PlaceCheck* check) {
  for (const NamedTensor& result : rank_class.results) {
    const std::string name = absl::StrCat("result `", EscapeBytes(result.name), "`");
    CheckTensor(plan, result, rank_class.memory.peak, "plan_c10", name, check);
  }
}

class PlanCheck {
 public:
  PlanCheck(const Plan& plan, PlanExtent extent, bool to_run)
      : plan_(plan), extent_(extent), to_run_(to_run) {}

  Diagnostics Run() {
    CheckSizes();
    const std::vector<DataInput> inputs = to_run_ ? DataInputsOf(plan_) : std::vector<DataInput>();
    for (const Segment& segment : plan_.segments) {
      CheckSegment(plan_, segment, to_run_ ? &inputs : nullptr, &violations_);
    }
    for (const ParamBlock& block : plan_.blocks) CheckBlock(plan_, block, &violations_);
    // What follows walks along the numbers that these have checked.
    if (violations_.empty()) CheckTables();
    if (violations_.empty()) CheckClasses();
    if (violations_.empty()) CheckStages(plan_, &violations_);
    if (violations_.empty() && extent_ != PlanExtent::kStages) {
      CheckPrograms(plan_, extent_, &violations_);
    }
    return std::move(violations_);
  }

 private:
  PlaceCheck At(std::string place) { return PlaceCheck(std::move(place), &violations_); }

  void CheckSizes() {
    PlaceCheck check = At("plan");
    const AxisId pipeline = PipelineAxis(plan_.mesh);
    const int64_t classes = pipeline < 0 ? 1 : plan_.mesh.size(pipeline);
    check.Require(static_cast<int64_t>(plan_.classes.size()) == classes, "plan_c1",
                  plan_.classes.size(), " classes for ", classes, " pipeline coordinates");
    for (size_t c = 0; c < plan_.classes.size(); ++c) {
      check.Require(plan_.classes[c].coordinate == static_cast<int>(c), "plan_c1", "class ", c,
                    " has coordinate ", plan_.classes[c].coordinate);
    }
    const auto in_range = [](int64_t n, int64_t most) { return n >= 1 && n <= most; };
    check.Require(in_range(plan_.micro_batch_size, kMaxSamples) &&
                      in_range(plan_.global_batch_size, kMaxSamples) &&
                      in_range(plan_.num_micro_batches, kMaxMicroBatches) &&
                      in_range(plan_.seq_length, kMaxSamples) && plan_.vocab >= 0 &&
                      plan_.predicted_step_ns >= 0,
                  "plan_c1", "batch sizes and lengths must be at least 1");
    check.Require(
        plan_.num_micro_batches < 1 || plan_.global_batch_size % plan_.num_micro_batches == 0,
        "plan_c1", plan_.num_micro_batches, " micro-batches do not divide ",
        plan_.global_batch_size, " samples of a step");
    check.Require(WideOf(plan_.gradient_sums) == DType::kF32, "plan_c1", "gradients are summed in ",
                  NameOf(plan_.gradient_sums), ", not in f32 or narrower");
    check.RequireOk(CheckMachine(plan_.machine), "plan_c1", "machine");
  }

  void CheckTables() {
    for (const bool eval : {false, true}) {
      PlaceCheck check = At(eval ? "evaluation" : "training");
      CheckTable(plan_, eval, &check);
    }
  }

  void CheckClasses() {
    std::vector<std::vector<int64_t>> ends;
    for (const Segment& segment : plan_.segments) ends.push_back(FormalEnds(segment));
    for (const PlanClass& rank_class : plan_.classes) {
      PlaceCheck check = At(absl::StrCat("class ", rank_class.coordinate));
      if (!CheckMemory(rank_class, &check)) continue;
      CheckResults(plan_, rank_class, &check);
      for (const HeldBlock& held : rank_class.blocks) CheckHeld(held, rank_class, &check);
      for (const std::vector<Chunk>* chunks : {&rank_class.chunks, &rank_class.eval_chunks}) {
        for (const Chunk& chunk : *chunks) {
          for (const auto* calls : ListsOf(chunk)) {
            CheckCalls(*calls, ends, rank_class, &chunk, &check);
          }
        }
      }
      CheckCalls(rank_class.update, ends, rank_class, nullptr, &check);
      CheckCalls(rank_class.eval_update, ends, rank_class, nullptr, &check);
    }
  }

  static bool CheckMemory(const PlanClass& rank_class, PlaceCheck* check) {
    const MemoryUse& memory = rank_class.memory;
    bool sound = true;
    for (int64_t bytes : {memory.params, memory.grads, memory.states, memory.copies, memory.frames,
                          memory.boundaries, memory.transient, memory.peak, memory.workspace,
                          rank_class.global_bytes, rank_class.eval_global_bytes}) {
      sound &= IsSize(bytes);
    }
    for (const auto* chunks : {&rank_class.chunks, &rank_class.eval_chunks}) {
      for (const Chunk& chunk : *chunks) sound &= IsSize(chunk.frame_bytes);
    }
    if (!check->Require(sound, "plan_c7", "a size is negative or more than 2^58")) return false;
    for (bool eval : {false, true}) {
      for (const Range& range : ZeroedRanges(rank_class, eval)) {
        check->Require(range.begin >= 0 && range.begin <= range.end && range.end <= memory.peak &&
                           IsAligned(range.begin),
                       "plan_c10", eval ? "evaluation " : "", "zeroes [", range.begin, ", ",
                       range.end, ") of an arena of ", memory.peak);
      }
    }
    for (const auto* named : {&rank_class.scalars, &rank_class.carried, &rank_class.reports,
                              &rank_class.eval_reports}) {
      for (const NamedAddress& entry : *named) {
        check->Require(IsSize(entry.address) && IsAligned(entry.address) &&
                           entry.address + kScalarAlignment <= memory.peak,
                       "plan_c10", "`", EscapeBytes(entry.name), "` at ", entry.address,
                       " of an arena of ", memory.peak);
      }
    }
    return true;
  }

  void CheckHeld(const HeldBlock& held, const PlanClass& rank_class, PlaceCheck* check) const {
    if (!check->Require(IsIndex(held.block, plan_.blocks), "plan_c4", "holds block ", held.block,
                        " of ", plan_.blocks.size()) ||
        !check->Require(held.layer >= kNoLayer && held.layer <= plan_.model.num_layers(), "plan_c4",
                        "holds a block of layer ", held.layer)) {
      return;
    }
    const ParamBlock& block = plan_.blocks[static_cast<size_t>(held.block)];
    const std::pair<int64_t, int64_t> regions[] = {{held.param_base, block.param_bytes},
                                                   {held.grad_base, block.grad_bytes},
                                                   {held.state_base, block.state_bytes}};
    for (const auto& [base, bytes] : regions) {
      check->Require(IsSize(base) && IsAligned(base) && base + bytes <= rank_class.memory.peak,
                     "plan_c10", "holds ", bytes, " bytes of block ", EscapeBytes(block.name),
                     " at ", base, " of an arena of ", rank_class.memory.peak);
    }
  }

  // `chunk` is null for calls of the update, which have no addresses that come with an action.
  void CheckCalls(const std::vector<Call>& calls, const std::vector<std::vector<int64_t>>& ends,
                  const PlanClass& rank_class, const Chunk* chunk, PlaceCheck* check) const {
    for (const Call& call : calls) {
      if (!check->Require(IsIndex(call.segment, plan_.segments), "plan_c5", "calls segment ",
                          call.segment, " of ", plan_.segments.size())) {
        continue;
      }
      const size_t number = static_cast<size_t>(call.segment);
      const Segment& segment = plan_.segments[number];
      if (!check->Require(call.bindings.size() == segment.formals.size(), "plan_c5",
                          EscapeBytes(segment.name), " has ", segment.formals.size(), " formals, ",
                          call.bindings.size(), " are bound") ||
          !check->Require(call.layer >= kNoLayer && call.layer <= plan_.model.num_layers(),
                          "plan_c5", EscapeBytes(segment.name), " is called for layer ",
                          call.layer)) {
        continue;
      }
      check->Require(call.running >= kAnyRunning, "plan_c5", EscapeBytes(segment.name),
                     " waits until ", call.running, " collectives run");
      CheckUses(segment, rank_class, check);
      for (size_t f = 0; f < segment.formals.size(); ++f) {
        CheckBinding(call.bindings[f], segment, f, ends[number][f], rank_class, chunk, check);
      }
    }
  }

  // What a class must have and be to run a segment.
  void CheckUses(const Segment& segment, const PlanClass& rank_class, PlaceCheck* check) const {
    check->Require(segment.workspace_bytes <= rank_class.memory.workspace, "plan_c15", "calls ",
                   EscapeBytes(segment.name), ", which may use ", segment.workspace_bytes,
                   " bytes of workspace, and has ", rank_class.memory.workspace);
    for (const Instr& instr : segment.instrs) {
      if (!JoinsClasses(instr)) continue;
      const absl::StatusOr<std::vector<int>> classes =
          JoinedClasses(plan_.mesh, plan_.stages, instr);
      if (!classes.ok()) continue;  // said of the segment
      check->Require(std::count(classes->begin(), classes->end(), rank_class.coordinate) > 0,
                     "plan_c16", "calls ", EscapeBytes(segment.name), ", which joins the classes ",
                     absl::StrJoin(*classes, ", "));
    }
  }

  static void CheckBinding(const Binding& binding, const Segment& segment, size_t formal,
                           int64_t end, const PlanClass& rank_class, const Chunk* chunk,
                           PlaceCheck* check) {
    const auto name = [&] {
      return absl::StrCat("`", EscapeBytes(ToString(segment.formals[formal])), "` of ",
                          EscapeBytes(segment.name));
    };
    const bool absolute = binding.base == BaseKind::kAbsolute;
    const bool frame = binding.base == BaseKind::kFrame;
    const bool sound = IsSize(binding.offset) && IsAligned(binding.offset);
    if (!sound || (!absolute && chunk == nullptr)) {
      check->Fail(sound ? "plan_c5" : "plan_c7", name(), " is bound to ", binding.offset,
                  absolute ? "" : " behind an address that the update has not");
      return;
    }
    const int64_t region = absolute ? rank_class.memory.peak
                           : frame  ? chunk->frame_bytes
                                    : kMaxPlanBytes;  // the action's address is checked
    if (binding.offset + end > region) {
      check->Fail("plan_c10", name(), " ends at ", binding.offset + end, " of ", region,
                  frame ? " bytes of a frame" : " bytes of the arena");
    }
  }

  const Plan& plan_;
  const PlanExtent extent_;
  const bool to_run_;
  Diagnostics violations_;
};

}  // namespace

Diagnostics FindPlanViolations(const Plan& plan, PlanExtent extent) {
  return PlanCheck(plan, extent, false).Run();
}

absl::Status CheckPlan(const Plan& plan) { return FindPlanViolations(plan).ToStatus(); }

absl::Status CheckPlanToRun(const Plan& plan) {
  return PlanCheck(plan, PlanExtent::kAll, true).Run().ToStatus();
}

}  // namespace mgc
