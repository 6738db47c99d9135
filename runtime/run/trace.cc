#include "runtime/run/trace.h"

#include <chrono>
#include <utility>

#include "runtime/run/where.h"

namespace mgc {
int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

// Of a record whose action is recorded.
void FillAction(const StepTables& tables, int rank_class, const TraceRecord& record,
                TraceEvent* event) {
  const StepAction& action =
      tables.classes[static_cast<size_t>(rank_class)].actions[static_cast<size_t>(record.action)];
  const ActionRef& ref = action.action->ref;
  if (IsOfMicroBatch(ref.kind)) event->micro_batch = ref.micro_batch;
  if (record.kind == TraceKind::kAction) {
    event->name = NameOfAction(tables, rank_class, static_cast<size_t>(record.action));
    event->calls = action.calls;
  } else {
    event->layer = (*action.calls)[static_cast<size_t>(record.call)].layer;
  }
}

void FillItem(const StepTables& tables, int rank_class, const TraceRecord& record,
              TraceEvent* event) {
  CommItem item;
  item.action = record.action;
  item.call = record.call;
  (record.kind == TraceKind::kTransfer ? item.transfer : item.exchange) = record.at;
  event->name = NameOfItem(tables, rank_class, item);
  if (record.kind == TraceKind::kCollective) {
    event->bytes = CollectiveOf(tables, rank_class, item).payload_bytes;
    return;
  }
  const StepClass& program = tables.classes[static_cast<size_t>(rank_class)];
  const Transfer& transfer = *program.transfers[static_cast<size_t>(record.at)].transfer;
  event->bytes = transfer.bytes;
  event->micro_batch = transfer.ref.micro_batch;
}

}  // namespace

std::vector<TraceEvent> NamedEvents(const LoadedPlan& plan, int rank, const TraceBuffer& buffer) {
  std::vector<TraceEvent> events;
  events.reserve(buffer.records().size());
  const int rank_class = plan.ranks[static_cast<size_t>(rank)].rank_class;
  for (const TraceRecord& record : buffer.records()) {
    const StepTables& tables = plan.tables(record.eval);
    TraceEvent event;
    event.rank = rank;
    event.kind = record.kind;
    event.begin_ns = record.begin_ns;
    event.end_ns = record.end_ns;
    if (record.kind != TraceKind::kTransfer) FillAction(tables, rank_class, record, &event);
    if (record.kind == TraceKind::kInstr) {
      const LoadedCall& call = (*plan.program(rank, record.eval).calls[record.action])[record.call];
      event.name =
          NameOfInstr(*call.segment->segment, call.call->layer, static_cast<size_t>(record.at));
      event.segment = call.segment->segment;
      event.instr = record.at;
    } else if (record.kind != TraceKind::kAction) {
      FillItem(tables, rank_class, record, &event);
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace mgc
