#include "graph/plan/plan.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/ir/results.h"
#include "graph/plan/local_use.h"

namespace mgc {
namespace {

// `tied`, `tied.3`: of parameters that several layers use.
bool IsTiedBlock(absl::string_view name) {
  return absl::ConsumePrefix(&name, kTiedBlock) && (name.empty() || name[0] == '.');
}

bool RunsTheSame(const Call& a, const Call& b) {
  return a.segment == b.segment && a.layer == b.layer &&
         std::equal(a.bindings.begin(), a.bindings.end(), b.bindings.begin(), b.bindings.end(),
                    [](const Binding& x, const Binding& y) {
                      return x.base == y.base && x.offset == y.offset;
                    });
}

}  // namespace

absl::string_view LetterOf(ActionKind kind) {
  constexpr absl::string_view kLetters[] = {"P", "F", "B", "U"};
  return kLetters[static_cast<int>(kind)];
}

absl::string_view WordOf(TransferKind kind) {
  constexpr absl::string_view kWords[] = {"SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  return kWords[static_cast<int>(kind)];
}

std::string NameOf(const ActionRef& ref, int stage) {
  return absl::StrCat(stage, LetterOf(ref.kind), ref.micro_batch);
}

std::string NameOf(const TransferRef& ref, int stage) {
  return absl::StrCat(stage, WordOf(ref.kind), ref.micro_batch);
}

int64_t WorkspaceBound(const Segment& segment, const Instr& instr, const Mesh& mesh,
                       KernelHost host) {
  const bool has = instr.op != nullptr &&
                   (host == KernelHost::kGpu ? instr.op->gpu_workspace : instr.op->workspace);
  return has ? WorkspaceOf(*instr.op, LocalUse(segment, instr, mesh).use(), host) : 0;
}

int64_t WorkspaceBound(const Segment& segment, const Mesh& mesh, KernelHost host) {
  int64_t most = 0;
  for (const Instr& instr : segment.instrs) {
    most = std::max(most, WorkspaceBound(segment, instr, mesh, host));
  }
  return most;
}

const std::vector<Call>& CallsOf(const Plan& plan, const PlanClass& plan_class, bool eval,
                                 const ActionRef& ref) {
  if (ref.kind == ActionKind::kUpdate) return eval ? plan_class.eval_update : plan_class.update;
  const std::vector<Chunk>& chunks = eval ? plan_class.eval_chunks : plan_class.chunks;
  const Chunk& chunk = chunks[static_cast<size_t>(ref.chunk)];
  return *ListsOf(chunk)[ListOf(chunk, ref, plan.num_micro_batches)];
}

bool HasBackward(const Plan& plan) { return !IsAsked(plan.model); }
bool HasEvaluation(const Plan& plan) { return !IsAsked(plan.model); }

bool ScalesLoss(const Plan& plan) {
  return std::any_of(plan.classes.begin(), plan.classes.end(),
                     [](const PlanClass& rank_class) { return !rank_class.carried.empty(); });
}

std::vector<Call> ReductionsOf(const Chunk& chunk) {
  std::vector<Call> reductions;
  auto next = chunk.backward.begin();
  for (const Call& call : chunk.last_backward) {
    if (next != chunk.backward.end() && RunsTheSame(call, *next)) {
      ++next;
    } else {
      reductions.push_back(call);
    }
  }
  return reductions;
}

AxisId PipelineAxis(const Mesh& mesh) { return mesh.FindAtomic("pp"); }

int ClassOfRank(const Mesh& mesh, int64_t rank) {
  const AxisId pipeline = PipelineAxis(mesh);
  return pipeline < 0 ? 0 : static_cast<int>(mesh.Coordinate(rank, pipeline));
}

absl::optional<ActionRef> NeighbourInPlace(const std::vector<StagePlace>& stages, int stage,
                                           const ActionRef& ref, bool next) {
  if (!IsOfMicroBatch(ref.kind)) return absl::nullopt;
  const bool forward = ref.kind == ActionKind::kForward;
  const int other = stage + (forward == next ? 1 : -1);
  if (other < 0 || other >= static_cast<int>(stages.size())) return absl::nullopt;
  const StagePlace& place = stages[static_cast<size_t>(other)];
  if (place.rank_class != stages[static_cast<size_t>(stage)].rank_class) return absl::nullopt;
  return ActionRef{ref.kind, place.chunk, ref.micro_batch};
}

const ParamState* FindState(const ParamEntry& entry, absl::string_view name) {
  const auto found = std::find_if(entry.states.begin(), entry.states.end(),
                                  [&](const ParamState& state) { return state.name == name; });
  return found == entry.states.end() ? nullptr : &*found;
}

const HeldBlock* FindHeld(const Plan& plan, const PlanClass& plan_class, absl::string_view block,
                          int layer) {
  // A number is that of another layer than the call's, whose own block is meant.
  const bool by_layer = block.empty() || absl::SimpleAtoi(block, &layer);
  for (const HeldBlock& held : plan_class.blocks) {
    if (held.block < 0 || held.block >= static_cast<int>(plan.blocks.size())) continue;
    const std::string& name = plan.blocks[static_cast<size_t>(held.block)].name;
    if (by_layer ? held.layer == layer && !IsTiedBlock(name) : name == block) return &held;
  }
  return nullptr;
}

int64_t BlockBase(const HeldBlock& held, Region region) {
  if (region == Region::kParams) return held.param_base;
  return region == Region::kGrads ? held.grad_base : held.state_base;
}

int64_t GradientAddress(const Plan& plan, const PlanClass& plan_class, const HeldBlock& held,
                        const ParamEntry& entry) {
  if (entry.gradient_base.region != Region::kGrads) return -1;
  const HeldBlock* base = FindHeld(plan, plan_class, entry.gradient_base.block, held.layer);
  return base == nullptr ? -1 : base->grad_base + entry.gradient_offset;
}

const std::vector<Range>& ZeroedRanges(const PlanClass& plan_class, bool eval) {
  return eval ? plan_class.eval_zeroed : plan_class.zeroed;
}

std::vector<int64_t> RanksOfClass(const Plan& plan, int coordinate) {
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < plan.mesh.world_size(); ++rank) {
    if (ClassOfRank(plan.mesh, rank) == coordinate) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace mgc
