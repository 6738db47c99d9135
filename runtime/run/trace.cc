#include "runtime/run/trace.h"

#include <chrono>

#include "runtime/run/where.h"

namespace mgc {
int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<TraceEvent> NamedEvents(const LoadedPlan& plan, int rank, const TraceBuffer& buffer) {
  std::vector<TraceEvent> events;
  const int rank_class = plan.ranks[static_cast<size_t>(rank)].rank_class;
  for (const TraceRecord& record : buffer.records()) {
    const StepTables& tables = plan.tables(record.eval);
    TraceEvent event{rank, record.kind, "", record.begin_ns, record.end_ns};
    if (record.kind == TraceKind::kAction) {
      event.name = NameOfAction(tables, rank_class, static_cast<size_t>(record.action));
    } else if (record.kind == TraceKind::kInstr) {
      const LoadedCall& call = (*plan.program(rank, record.eval).calls[record.action])[record.call];
      event.name =
          NameOfInstr(*call.segment->segment, call.call->layer, static_cast<size_t>(record.at));
      event.segment = call.segment->segment;
      event.instr = record.at;
    } else {
      CommItem item;
      item.action = record.action;
      item.call = record.call;
      (record.kind == TraceKind::kTransfer ? item.transfer : item.exchange) = record.at;
      event.name = NameOfItem(tables, rank_class, item);
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace mgc
