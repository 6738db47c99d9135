#include "runtime/run/where.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mgc {
namespace {

constexpr size_t kNeighbours = 2;  // instructions shown before and after the one that failed

int ClassOf(const LoadedPlan& plan, int rank) {
  return plan.ranks[static_cast<size_t>(rank)].rank_class;
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

std::string NameOfAction(const StepTables& tables, int rank_class, size_t action) {
  const StepClass& program = tables.classes[static_cast<size_t>(rank_class)];
  return NameOf(program.actions[action].action->ref, *program.chunks);
}

std::string NameOfInstr(const Segment& segment, int layer, size_t at) {
  const Instr& instr = segment.instrs[at];
  std::string name = absl::StrCat(segment.name, "[", at, "]");
  if (instr.op != nullptr) absl::StrAppend(&name, " ", instr.op->name);
  if (layer >= 0) absl::StrAppend(&name, " layer ", layer);
  return name;
}

std::string SourceText(const Graph& model, const Instr& instr) {
  const int32_t file = instr.loc.file;
  if (file < 0 || static_cast<size_t>(file) >= model.files().size()) return "";
  return absl::StrCat(" (", model.files()[static_cast<size_t>(file)], ":", instr.loc.line, ")");
}

const InstrCollective& CollectiveOf(const StepTables& tables, int rank_class,
                                    const CommItem& item) {
  const StepClass& program = tables.classes[static_cast<size_t>(rank_class)];
  const Call& call =
      (*program.actions[static_cast<size_t>(item.action)].calls)[static_cast<size_t>(item.call)];
  return tables.segments[static_cast<size_t>(call.segment)]
      .starts[static_cast<size_t>(item.exchange)]
      .collective;
}

std::string NameOfItem(const StepTables& tables, int rank_class, const CommItem& item) {
  const StepClass& program = tables.classes[static_cast<size_t>(rank_class)];
  if (item.transfer >= 0) {
    const StepTransfer& transfer = program.transfers[static_cast<size_t>(item.transfer)];
    return NameOf(transfer.transfer->ref, *program.chunks);
  }
  return NameOf(CollectiveOf(tables, rank_class, item));
}

absl::Status FailureOfInstr(const LoadedPlan& plan, int rank, bool eval, size_t action,
                            const LoadedCall& call, size_t at, const absl::Status& why) {
  return Failure(why,
                 absl::StrCat(NameOfRank(plan.plan.mesh, rank), ", ",
                              NameOfAction(plan.tables(eval), ClassOf(plan, rank), action), ", ",
                              NameOfInstr(*call.segment->segment, call.call->layer, at)),
                 *call.segment->segment, at);
}

absl::Status FailureOfItem(const LoadedPlan& plan, int rank, bool eval, const CommItem& item,
                           const absl::Status& why) {
  if (item.transfer >= 0) {
    return {why.code(), absl::StrCat(NameOfRank(plan.plan.mesh, rank), ", ",
                                     NameOfItem(plan.tables(eval), ClassOf(plan, rank), item), ": ",
                                     why.message())};
  }
  const size_t action = static_cast<size_t>(item.action);
  const LoadedCall& call =
      (*plan.program(rank, eval).calls[action])[static_cast<size_t>(item.call)];
  const size_t at = static_cast<size_t>(call.segment->exchanges[item.exchange].instr);
  return Failure(why,
                 absl::StrCat("ranks ", absl::StrJoin(plan.GroupOf(item.group, rank), ", "), ", ",
                              NameOfAction(plan.tables(eval), ClassOf(plan, rank), action), ", ",
                              NameOfInstr(*call.segment->segment, call.call->layer, at), ", ",
                              NameOfItem(plan.tables(eval), ClassOf(plan, rank), item)),
                 *call.segment->segment, at);
}

}  // namespace mgc
