#include "passes/plan/time/predict_step.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/plan/step_tables.h"
#include "graph/plan/step_walk.h"
#include "graph/plan/step_walker.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

// Outboxes of a stage towards one neighbour: one is written while the other crosses.
constexpr size_t kMaxOutboxes = 2;

struct Issued {
  int64_t time = 0;
  int64_t ns = 0;
  AxisSet axes;
};
// Where a class is, and when what it has done ended.
struct ClassClock {
  int64_t now = 0;  // of the compute queue
  int64_t began = 0;
  int64_t busy = 0;
  int64_t busy_before = 0;  // the action
  int64_t update = 0;       // of busy
  int64_t started = 0;      // ns of the collectives that the action has started
  CollectiveTime collectives;
  int64_t queue_free = 0;        // of the communication queue
  int64_t first_collective = 0;  // of `call`, in the step
  const Call* call = nullptr;    // of the action, and the step of its segment that comes next
  const Call* last_call = nullptr;
  size_t next_step = 0;
  std::vector<int64_t> ends;  // of actions, in order
  std::vector<Issued> issued;
  std::vector<int64_t> collective_ends;
  std::vector<int64_t> transfer_ends;
  std::vector<std::vector<int64_t>> sent;        // by chunk and kind of action
  std::vector<std::vector<TimedStep>> segments;  // those that have been called

  std::vector<int64_t>& Sent(const Action& action) { return Sent(action.ref); }
  const std::vector<int64_t>& Sent(const Action& action) const {
    return sent[SentIndex(action.ref)];
  }
  std::vector<int64_t>& Sent(const ActionRef& ref) { return sent[SentIndex(ref)]; }
  size_t SentIndex(const ActionRef& ref) const {
    const bool backward = ref.kind == ActionKind::kBackward;
    return static_cast<size_t>(ref.chunk) * 2 + (backward ? 1 : 0);
  }

  // Until the first `count` of what has ended.
  void WaitFor(const std::vector<int64_t>& ended, int64_t count) {
    if (count > 0) now = std::max(now, ended[static_cast<size_t>(count - 1)]);
  }
  void WaitForCollectives(int64_t count) {
    const int64_t before = now;
    WaitFor(collective_ends, count);
    if (now == before) return;
    int64_t& exposed_ns = collectives.exposed[issued[static_cast<size_t>(count - 1)].axes];
    exposed_ns = Later(exposed_ns, now - before);
  }
};

int64_t MicroBatchOf(const ActionRef& ref) {
  return IsOfMicroBatch(ref.kind) ? ref.micro_batch : -1;
}

// Of an action, a collective and a transfer.
SimulatedSpan SpanOf(const StepTables& tables, int c, const StepAction& action, int64_t begin,
                     int64_t end) {
  const ActionRef& ref = action.action->ref;
  const StepClass& step_class = tables.classes[static_cast<size_t>(c)];
  SimulatedSpan span{c, false, NameOf(ref, *step_class.chunks), begin, end};
  span.micro_batch = MicroBatchOf(ref);
  span.calls = action.calls;
  return span;
}

SimulatedSpan SpanOf(const StepTables& tables, const InstrSite& site, int64_t begin, int64_t end) {
  const StepSegment& segment = tables.segments[static_cast<size_t>(site.call->segment)];
  const InstrCollective& collective =
      segment.starts[static_cast<size_t>(site.instr->collective)].collective;
  SimulatedSpan span{site.class_index, true, NameOf(collective), begin, end};
  span.micro_batch = MicroBatchOf(site.action->ref);
  span.layer = site.call->layer;
  span.bytes = collective.payload_bytes;
  return span;
}

SimulatedSpan SpanOf(const StepTables& tables, int c, const Transfer& transfer, int64_t begin,
                     int64_t end) {
  const StepClass& step_class = tables.classes[static_cast<size_t>(c)];
  SimulatedSpan span{c, true, NameOf(transfer.ref, *step_class.chunks), begin, end};
  span.micro_batch = transfer.ref.micro_batch;
  span.bytes = transfer.bytes;
  return span;
}

class StepClock : public StepVisitor {
 public:
  explicit StepClock(const StepTables& tables)
      : tables_(tables),
        costs_{tables.plan.mesh, tables.plan.machine, tables.plan.stages},
        classes_(tables.classes.size()) {
    for (size_t c = 0; c < classes_.size(); ++c) {
      classes_[c].segments.resize(tables.segments.size());
      classes_[c].sent.assign(2 * tables.classes[c].chunks->size(), {});
      one_chunk_each_ &= tables.classes[c].chunks->size() == 1;
    }
  }

  SimulatedStep Take() {
    for (const ClassClock& at : classes_) {
      step_.busy_ns.push_back(at.busy);
      step_.update_ns.push_back(at.update);
      step_.collectives.push_back(at.collectives);
    }
    return std::move(step_);
  }

  bool WantsInstrs() const override { return false; }

  bool HoldsAction(int c, const Action& action) const override {
    return !lets_go_ && OutboxesBefore(action) > classes_[Index(c)].Sent(action).size();
  }

  void BeginAction(int c, const Action& action) override {
    ClassClock& at = classes_[Index(c)];
    const StepAction& step = tables_.classes[Index(c)].actions[at.ends.size()];
    // Transfers and collectives of a class end in the order of its list.
    at.WaitFor(at.transfer_ends, step.transfers_needed);
    const size_t before = OutboxesBefore(action);
    const std::vector<int64_t>& sent = at.Sent(action);
    if (before > 0 && before <= sent.size()) at.now = std::max(at.now, sent[before - 1]);
    at.began = at.now;
    at.busy_before = at.busy;
    at.started = 0;
    at.first_collective = step.first_collective;
    at.call = step.calls->data();
    at.last_call = at.call + step.calls->size();
    at.next_step = 0;
  }

  void Start(const InstrSite& site) override {
    ClassClock& at = classes_[Index(site.class_index)];
    const TimedStep& step = RunTo(site.class_index, site.call);
    at.issued.push_back({at.now, step.ns, step.axes});
    at.started = Later(at.started, step.ns);
  }

  void Wait(const InstrSite& site) override {
    ClassClock& at = classes_[Index(site.class_index)];
    const TimedStep& step = RunTo(site.class_index, site.call);
    at.WaitForCollectives(at.first_collective + step.collective + 1);
  }

  void Await(const InstrSite& site) override {
    ClassClock& at = classes_[Index(site.class_index)];
    RunOut(site.class_index, site.call);
    const StepAction& action = tables_.classes[Index(site.class_index)].actions[at.ends.size()];
    const size_t call = static_cast<size_t>(site.call - action.calls->data());
    at.WaitForCollectives(action.collectives_needed[call]);
  }

  void Collective(absl::Span<const InstrSite> sites) override {
    for (const InstrSite& site : sites) {
      ClassClock& at = classes_[Index(site.class_index)];
      const Issued& issued = at.issued[at.collective_ends.size()];
      const int64_t begin = std::max(at.queue_free, issued.time);
      at.queue_free = Later(begin, issued.ns);
      at.collectives.all_ns = Later(at.collectives.all_ns, issued.ns);
      at.collective_ends.push_back(at.queue_free);
      AddSpan(SpanOf(tables_, site, begin, at.queue_free));
    }
  }

  bool HoldsTransfer(int to, const mgc::Transfer& receive) const override {
    return !lets_go_ && ActionsBefore(to, receive) > classes_[Index(to)].ends.size();
  }

  void Transfer(int from, const mgc::Transfer& send, int to,
                const mgc::Transfer& receive) override {
    ClassClock& source = classes_[Index(from)];
    ClassClock& target = classes_[Index(to)];
    int64_t begin = std::max(source.queue_free, target.queue_free);
    begin = std::max({begin, ActionsEnd(from, send), ActionsEnd(to, receive)});
    const size_t before = ActionsBefore(to, receive);
    if (before > 0 && before <= target.ends.size()) {
      begin = std::max(begin, target.ends[before - 1]);
    }
    const int64_t end = Later(begin, TransferNs(costs_, from, to, send.bytes));
    for (ClassClock* at : {&source, &target}) {
      at->queue_free = end;
      at->transfer_ends.push_back(end);
    }
    source.Sent(SenderOf(send.ref)).push_back(end);
    AddSpan(SpanOf(tables_, from, send, begin, end));
    AddSpan(SpanOf(tables_, to, receive, begin, end));
  }

  void EndAction(int c, const Action& action) override {
    ClassClock& at = classes_[Index(c)];
    RunOut(c, at.last_call);
    at.ends.push_back(at.now);
    at.collectives.hideable_ns =
        Later(at.collectives.hideable_ns, std::min(at.started, at.busy - at.busy_before));
    if (action.ref.kind == ActionKind::kUpdate) {
      at.update = Later(at.update, at.busy - at.busy_before);
    }
    const StepAction& step = tables_.classes[Index(c)].actions[at.ends.size() - 1];
    AddSpan(SpanOf(tables_, c, step, at.began, at.now));
  }

  bool LetGo() override {
    const bool held = !lets_go_;
    lets_go_ = true;
    return held;
  }

 private:
  static size_t Index(int c) { return static_cast<size_t>(c); }

  // How many of an action's kind must have been sent before it begins.
  size_t OutboxesBefore(const Action& action) const {
    const bool sends = action.ref.kind == ActionKind::kForward
                           ? action.output >= 0
                           : action.ref.kind == ActionKind::kBackward && action.grad_output >= 0;
    const size_t made = static_cast<size_t>(action.ref.micro_batch);
    return one_chunk_each_ && sends && made >= kMaxOutboxes ? made - kMaxOutboxes + 1 : 0;
  }

  // How many actions must have ended before a receive is posted.
  size_t ActionsBefore(int to, const mgc::Transfer& receive) const {
    const ActionRef consumer{
        IsForward(receive.ref.kind) ? ActionKind::kForward : ActionKind::kBackward,
        receive.ref.chunk, receive.ref.micro_batch};
    return static_cast<size_t>(std::max(tables_.classes[Index(to)].IndexOf(consumer) - 1, 0));
  }

  // When the actions that this end of a transfer comes after have ended.
  int64_t ActionsEnd(int c, const mgc::Transfer& transfer) const {
    const StepClass& step_class = tables_.classes[Index(c)];
    const int place = step_class.IndexOf(transfer.ref);
    const int64_t needed = step_class.transfers[static_cast<size_t>(place)].actions_needed;
    return needed == 0 ? 0 : classes_[Index(c)].ends[static_cast<size_t>(needed - 1)];
  }

  const std::vector<TimedStep>& StepsOf(int c, const Call& call) {
    std::vector<TimedStep>& steps = classes_[Index(c)].segments[static_cast<size_t>(call.segment)];
    if (steps.empty()) {
      steps = TimeSegment(costs_, tables_.plan.segments[static_cast<size_t>(call.segment)], c);
    }
    return steps;
  }

  // Runs on to the next start or wait of `call`, which it returns.
  const TimedStep& RunTo(int c, const Call* call) {
    RunOut(c, call);
    const std::vector<TimedStep>& steps = StepsOf(c, *call);
    ClassClock& at = classes_[Index(c)];
    while (steps[at.next_step].kind == TimedStep::kRun) Run(steps[at.next_step++].ns, &at);
    return steps[at.next_step++];
  }

  // Runs what is left of the calls before `end`: no start and no wait.
  void RunOut(int c, const Call* end) {
    ClassClock& at = classes_[Index(c)];
    for (; at.call != end; ++at.call, at.next_step = 0) {
      const std::vector<TimedStep>& steps = StepsOf(c, *at.call);
      for (; at.next_step < steps.size(); ++at.next_step) Run(steps[at.next_step].ns, &at);
      const StepSegment& segment = tables_.segments[static_cast<size_t>(at.call->segment)];
      at.first_collective += static_cast<int64_t>(segment.starts.size());
    }
  }

  void Run(int64_t ns, ClassClock* at) {
    at->now = Later(at->now, ns);
    at->busy = Later(at->busy, ns);
  }

  void AddSpan(SimulatedSpan span) {
    step_.makespan_ns = std::max(step_.makespan_ns, span.end_ns);
    step_.spans.push_back(std::move(span));
  }

  const StepTables& tables_;
  const CostModel costs_;
  std::vector<ClassClock> classes_;
  bool one_chunk_each_ = true;
  bool lets_go_ = false;  // the machine's rules have stopped the plan: they bind no more
  SimulatedStep step_;
};

}  // namespace

absl::StatusOr<SimulatedStep> PredictStep(const Plan& plan) {
  const StepTables tables(plan, false);
  StepClock clock(tables);
  const std::string stopped = WalkSteps(tables, 1, &clock);
  if (!stopped.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("the step never ends [order_v4]\n", stopped));
  }
  SimulatedStep step = clock.Take();
  if (step.makespan_ns >= kMaxNs) return StepOfCenturies(plan.machine);
  return step;
}

}  // namespace mgc
