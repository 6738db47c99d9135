#include "runtime/run/where.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mgc {
namespace {

constexpr size_t kNeighbours = 2;  // instructions shown before and after the one that failed

const LoadedProgram& ProgramOf(const LoadedPlan& plan, int rank, bool eval) {
  const LoadedClass& rank_class = plan.classes[plan.ranks[rank].rank_class];
  return eval ? rank_class.eval : rank_class.train;
}

const std::vector<Chunk>& ChunksOf(const LoadedPlan& plan, int rank, bool eval) {
  const PlanClass& rank_class = *plan.classes[plan.ranks[rank].rank_class].plan_class;
  return eval ? rank_class.eval_chunks : rank_class.chunks;
}

std::string SlotNames(const Segment& segment, const std::vector<int>& slots) {
  return absl::StrJoin(slots, ", ", [&segment](std::string* out, int slot) {
    absl::StrAppend(out, segment.slots[static_cast<size_t>(slot)].name);
  });
}

std::string ContentOf(const Segment& segment, const Instr& instr) {
  const std::string inputs = absl::StrCat("(", SlotNames(segment, instr.inputs), ")");
  const char* const op = instr.op != nullptr ? instr.op->name.c_str() : "";
  switch (instr.kind) {
    case InstrKind::kCompute:
      return absl::StrCat(SlotNames(segment, instr.outputs), " = ", op, inputs);
    case InstrKind::kLoad:
      return absl::StrCat(SlotNames(segment, instr.outputs), " = load");
    case InstrKind::kStart:
      return absl::StrCat("start ", SlotNames(segment, instr.outputs), " = ", op, inputs);
    case InstrKind::kWait:
      return absl::StrCat("wait ", instr.collective);
  }
  return "";
}

// The neighbourhood of instruction `at`, a line each.
std::string Window(const Segment& segment, size_t at) {
  std::string text;
  const size_t begin = at - std::min(at, kNeighbours);
  const size_t end = std::min(segment.instrs.size(), at + kNeighbours + 1);
  for (size_t i = begin; i < end; ++i) {
    absl::StrAppend(&text, "\n  ", i == at ? "-> " : "   ", segment.name, "[", i, "] ",
                    ContentOf(segment, segment.instrs[i]));
  }
  return text;
}

absl::Status Failure(const absl::Status& why, const std::string& where, const Segment& segment,
                     size_t at) {
  return {why.code(), absl::StrCat(where, ": ", why.message(), Window(segment, at))};
}

}  // namespace

std::string NameOfRank(const Mesh& mesh, int64_t rank) {
  std::string name = absl::StrCat("rank ", rank);
  for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
    absl::StrAppend(&name, axis == 0 ? " (" : ", ", mesh.name(axis), " ",
                    mesh.Coordinate(rank, axis));
  }
  return absl::StrCat(name, mesh.num_axes() > 0 ? ")" : "");
}

std::string NameOfAction(const LoadedPlan& plan, int rank, bool eval, size_t action) {
  return NameOf(ProgramOf(plan, rank, eval).steps->actions[action].action->ref,
                ChunksOf(plan, rank, eval));
}

std::string NameOfInstr(const LoadedCall& call, size_t at) {
  const Instr& instr = *call.segment->instrs[at].instr;
  std::string name = absl::StrCat(call.segment->segment->name, "[", at, "]");
  if (instr.op != nullptr) absl::StrAppend(&name, " ", instr.op->name);
  if (call.call->layer >= 0) absl::StrAppend(&name, " layer ", call.call->layer);
  return name;
}

std::string NameOfItem(const LoadedPlan& plan, int rank, bool eval, const CommItem& item) {
  const LoadedProgram& program = ProgramOf(plan, rank, eval);
  if (item.transfer >= 0) {
    return NameOf(program.steps->transfers[item.transfer].transfer->ref,
                  ChunksOf(plan, rank, eval));
  }
  const LoadedCall& call = (*program.calls[item.action])[item.call];
  const LoadedExchange& exchange = call.segment->exchanges[item.exchange];
  const InstrCollective& collective = exchange.start->collective;
  return absl::StrCat(NameOf(collective.kind()), " ", collective.group);
}

absl::Status FailureOfInstr(const LoadedPlan& plan, int rank, bool eval, size_t action,
                            const LoadedCall& call, size_t at, const absl::Status& why) {
  return Failure(why,
                 absl::StrCat(NameOfRank(plan.plan.mesh, rank), ", ",
                              NameOfAction(plan, rank, eval, action), ", ", NameOfInstr(call, at)),
                 *call.segment->segment, at);
}

absl::Status FailureOfCollective(const LoadedPlan& plan, int rank, bool eval, const CommItem& item,
                                 const absl::Status& why) {
  const size_t action = static_cast<size_t>(item.action);
  const LoadedCall& call =
      (*ProgramOf(plan, rank, eval).calls[action])[static_cast<size_t>(item.call)];
  const size_t at = static_cast<size_t>(call.segment->exchanges[item.exchange].instr);
  return Failure(why,
                 absl::StrCat("ranks ", absl::StrJoin(plan.GroupOf(item.group, rank), ", "), ", ",
                              NameOfAction(plan, rank, eval, action), ", ", NameOfInstr(call, at),
                              ", ", NameOfItem(plan, rank, eval, item)),
                 *call.segment->segment, at);
}

}  // namespace mgc
