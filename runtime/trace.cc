#include "runtime/trace.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

const LoadedProgram& ProgramOf(const LoadedPlan& plan, int rank, bool eval) {
  const LoadedClass& rank_class = plan.classes[plan.ranks[rank].rank_class];
  return eval ? rank_class.eval : rank_class.train;
}

const std::vector<Chunk>& ChunksOf(const LoadedPlan& plan, int rank, bool eval) {
  const PlanClass& rank_class = *plan.classes[plan.ranks[rank].rank_class].plan_class;
  return eval ? rank_class.eval_chunks : rank_class.chunks;
}

std::string NameOfInstr(const LoadedCall& call, int at) {
  const Instr& instr = *call.segment->instrs[at].instr;
  std::string name = absl::StrCat(call.segment->segment->name, "[", at, "]");
  if (instr.op != nullptr) absl::StrAppend(&name, " ", instr.op->name);
  if (call.call->layer >= 0) absl::StrAppend(&name, " layer ", call.call->layer);
  return name;
}

}  // namespace

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string NameOfItem(const LoadedPlan& plan, int rank, bool eval, const CommItem& item) {
  const LoadedProgram& program = ProgramOf(plan, rank, eval);
  if (item.transfer >= 0) {
    return NameOf(program.transfers[item.transfer].transfer->ref, ChunksOf(plan, rank, eval));
  }
  const LoadedCall& call = (*program.actions[item.action].calls)[item.call];
  const LoadedExchange& exchange = call.segment->exchanges[item.exchange];
  const Exchange& part = exchange.parts[0];
  return absl::StrCat(NameOf(part.kind), " ",
                      exchange.embedding ? "embedding" : plan.plan.mesh.GroupName(part.axes));
}

std::vector<TraceEvent> NamedEvents(const LoadedPlan& plan, int rank, const TraceBuffer& buffer) {
  std::vector<TraceEvent> events;
  for (const TraceRecord& record : buffer.records()) {
    const LoadedProgram& program = ProgramOf(plan, rank, record.eval);
    TraceEvent event{rank, record.kind, "", record.begin_ns, record.end_ns};
    if (record.kind == TraceKind::kAction) {
      event.name =
          NameOf(program.actions[record.action].action->ref, ChunksOf(plan, rank, record.eval));
    } else if (record.kind == TraceKind::kInstr) {
      event.name = NameOfInstr((*program.actions[record.action].calls)[record.call], record.at);
    } else {
      CommItem item;
      item.action = record.action;
      item.call = record.call;
      (record.kind == TraceKind::kTransfer ? item.transfer : item.exchange) = record.at;
      event.name = NameOfItem(plan, rank, record.eval, item);
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace mgc
