// order_v4, v6: a walk through two steps, with the uses of frames and boundary slots.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/verify/common/address_map.h"
#include "graph/verify/order/order_clocks.h"
#include "graph/verify/order/order_internal.h"

namespace mgc {
namespace {

constexpr int kSteps = 2;

// A use of memory: from one event of a class' lists to another.
struct Use {
  ClassEvent begin;
  ClassEvent end;
};

// What does not change from step to step, of one class.
struct ClassUses {
  std::vector<Range> moving;  // merged: what frames and boundary slots ever take
  // By chunk and list (ListsOf), the update last: ranges at fixed addresses that lie in `moving`.
  std::vector<std::vector<Range>> fixed;
  std::vector<bool> reads_input;               // by chunk: backward does
  std::vector<std::array<int64_t, 2>> leaves;  // by chunk: bytes behind output and grad_output
  std::vector<Use> uses;
  AddressMap<int64_t> users;  // by address, who uses it or has used it last
  int64_t transfers_done = 0;
};

std::vector<Range> FixedOf(const Footprint& footprint, const std::vector<Range>& moving) {
  std::vector<Range> fixed;
  for (const Range& range : footprint.Of(BaseKind::kAbsolute)) {
    if (Touches(moving, range)) fixed.push_back(range);
  }
  return fixed;
}

// Where the ranges of an action's list stand among the `lists` of ClassUses::fixed.
size_t FixedIndex(const StepTables& tables, const StepClass& walk, const ActionRef& ref,
                  size_t lists) {
  if (ref.kind == ActionKind::kUpdate) return lists - 1;
  const size_t chunk = static_cast<size_t>(ref.chunk);
  return chunk * kNumChunkLists + ListOf((*walk.chunks)[chunk], ref, tables.plan.num_micro_batches);
}

class StepCheck : public StepVisitor {
 public:
  StepCheck(const StepTables& tables, const Footprints& footprints, Diagnostics* findings)
      : tables_(tables), clocks_(tables, kSteps), findings_(*findings) {
    for (const StepClass& walk : tables.classes) classes_.push_back(UsesOf(walk, footprints));
    begun_.assign(tables.classes.size(), 0);
  }

  bool IsExhausted() const { return clocks_.IsExhausted(); }

  bool WantsInstrs() const override { return false; }

  void Start(const InstrSite& site) override {
    Begin(site.class_index, *site.action);
    clocks_.Start(site);
  }
  void Collective(absl::Span<const InstrSite> sites) override { clocks_.Collect(sites); }
  void Wait(const InstrSite& site) override { clocks_.Wait(site); }
  // What an action's first call waits for is over when the action begins.
  void Await(const InstrSite& site) override {
    const int64_t at = begun_[static_cast<size_t>(site.class_index)] / 2;
    const std::vector<StepAction>& actions = WalkOf(site.class_index).actions;
    const StepAction& action = actions[static_cast<size_t>(at) % actions.size()];
    if (site.call != action.calls->data()) Begin(site.class_index, *site.action);
    clocks_.Await(site.class_index, site.call->running);
  }

  void EndAction(int c, const Action& action) override {
    Begin(c, action);
    const int64_t size = static_cast<int64_t>(WalkOf(c).actions.size());
    int64_t& begun = begun_[static_cast<size_t>(c)];
    const int64_t index = (begun - 1) / 2;
    clocks_.EndAction(c, static_cast<int>(index / size), static_cast<int>(index % size));
    ++begun;
  }

  void Transfer(int from, const mgc::Transfer& /*send*/, int to,
                const mgc::Transfer& receive) override {
    ClassUses& sender = classes_[static_cast<size_t>(from)];
    ClassUses& receiver = classes_[static_cast<size_t>(to)];
    const int64_t sent = sender.transfers_done++;
    const int64_t received = receiver.transfers_done++;
    const ClockMoment moment = clocks_.PassTransfer(from, sent, to, received);
    const StepClass& walk = WalkOf(to);
    const int64_t step = received / static_cast<int64_t>(walk.transfers.size());
    const ActionRef reader{
        IsForward(receive.ref.kind) ? ActionKind::kForward : ActionKind::kBackward,
        receive.ref.chunk, receive.ref.micro_batch};
    const Use use{{true, received}, LastReader(walk, reader, step)};
    Take(to, {receive.address, receive.address + receive.bytes}, use, moment);
  }

 private:
  const StepClass& WalkOf(int c) const { return tables_.classes[static_cast<size_t>(c)]; }

  ClassUses UsesOf(const StepClass& walk, const Footprints& footprints) const {
    ClassUses made;
    std::vector<Range> moving;
    for (const StepAction& action : walk.actions) {
      if (HasFrame(walk, *action.action)) moving.push_back(FrameOf(walk, *action.action));
    }
    for (const StepTransfer& transfer : walk.transfers) {
      const int64_t address = transfer.transfer->address;
      moving.push_back({address, address + transfer.transfer->bytes});
    }
    for (const Range& range : HandedOver(tables_, walk)) moving.push_back(range);
    made.moving = Merged(std::move(moving));
    for (const Chunk& chunk : *walk.chunks) {
      const Footprint backward = footprints.Of(chunk.backward);
      const Footprint forward = footprints.Of(chunk.forward);
      made.reads_input.push_back(!backward.Of(BaseKind::kInput).empty());
      made.leaves.push_back({forward.End(BaseKind::kOutput), backward.End(BaseKind::kGradOutput)});
      for (const auto* calls : ListsOf(chunk)) {
        made.fixed.push_back(FixedOf(footprints.Of(*calls), made.moving));
      }
    }
    const PlanClass& plan_class = *walk.plan_class;
    made.fixed.push_back(FixedOf(
        footprints.Of(tables_.eval ? plan_class.eval_update : plan_class.update), made.moving));
    return made;
  }

  static bool HasFrame(const StepClass& walk, const Action& action) {
    return action.ref.kind == ActionKind::kForward && action.frame >= 0 &&
           (*walk.chunks)[static_cast<size_t>(action.ref.chunk)].frame_bytes > 0;
  }
  static Range FrameOf(const StepClass& walk, const Action& action) {
    return {action.frame,
            action.frame + (*walk.chunks)[static_cast<size_t>(action.ref.chunk)].frame_bytes};
  }

  // The action's first event, once. begun_ counts begins and ends.
  void Begin(int c, const Action& action) {
    int64_t& begun = begun_[static_cast<size_t>(c)];
    if (begun % 2 == 1) return;
    const StepClass& walk = WalkOf(c);
    const int64_t index = begun / 2;
    const int64_t size = static_cast<int64_t>(walk.actions.size());
    ++begun;
    const int64_t step = index / size;
    const ClockMoment moment =
        clocks_.BeginAction(c, static_cast<int>(step), static_cast<int>(index % size));
    TakeFrame(c, action, index, moment);
    TakeOutbox(c, action, index, moment);
    const std::vector<std::vector<Range>>& fixed = classes_[static_cast<size_t>(c)].fixed;
    const size_t list = FixedIndex(tables_, walk, action.ref, fixed.size());
    for (const Range& range : fixed[list]) Take(c, range, {{false, index}, {false, index}}, moment);
  }

  void TakeFrame(int c, const Action& action, int64_t index, const ClockMoment& moment) {
    const StepClass& walk = WalkOf(c);
    if (!HasFrame(walk, action)) return;
    const int backward =
        walk.IndexOf(ActionRef{ActionKind::kBackward, action.ref.chunk, action.ref.micro_batch});
    const int64_t size = static_cast<int64_t>(walk.actions.size());
    const int64_t end = backward < 0 ? index : index / size * size + backward;
    Take(c, FrameOf(walk, action), {{false, index}, {false, end}}, moment);
  }

  void TakeOutbox(int c, const Action& action, int64_t index, const ClockMoment& moment) {
    if (!IsOfMicroBatch(action.ref.kind)) return;
    const StepClass& walk = WalkOf(c);
    const int send = walk.IndexOf(TransferRef{action.ref.kind == ActionKind::kForward
                                                  ? TransferKind::kSendForward
                                                  : TransferKind::kSendBackward,
                                              action.ref.chunk, action.ref.micro_batch});
    if (send < 0) return TakeHandedOver(c, action, index, moment);
    const mgc::Transfer& transfer = *walk.transfers[static_cast<size_t>(send)].transfer;
    const int64_t step = index / static_cast<int64_t>(walk.actions.size());
    const int64_t end = step * static_cast<int64_t>(walk.transfers.size()) + send;
    Take(c, {transfer.address, transfer.address + transfer.bytes}, {{false, index}, {true, end}},
         moment);
  }

  // What a stage of the same class takes over, in place.
  void TakeHandedOver(int c, const Action& action, int64_t index, const ClockMoment& moment) {
    const StepClass& walk = WalkOf(c);
    const absl::optional<ActionRef> next =
        NeighbourInPlace(tables_.plan.stages, *walk.chunks, action.ref, true);
    if (!next.has_value()) return;
    const bool forward = action.ref.kind == ActionKind::kForward;
    const int64_t begin = forward ? action.output : action.grad_output;
    const int64_t bytes = classes_[static_cast<size_t>(c)]
                              .leaves[static_cast<size_t>(action.ref.chunk)][forward ? 0 : 1];
    const int64_t step = index / static_cast<int64_t>(walk.actions.size());
    Take(c, {begin, begin + bytes}, {{false, index}, LastReader(walk, *next, step)}, moment);
  }

  // Of what `ref` takes: backward may read again what forward has read.
  ClassEvent LastReader(const StepClass& walk, const ActionRef& ref, int64_t step) const {
    const bool again = !tables_.eval && classes_[static_cast<size_t>(walk.plan_class->coordinate)]
                                            .reads_input[static_cast<size_t>(ref.chunk)];
    const ActionKind kind = again ? ActionKind::kBackward : ref.kind;
    const int index = walk.IndexOf(ActionRef{kind, ref.chunk, ref.micro_batch});
    return {false, step * static_cast<int64_t>(walk.actions.size()) + index};
  }

  void Take(int c, const Range& range, const Use& use, const ClockMoment& moment) {
    ClassUses& mine = classes_[static_cast<size_t>(c)];
    const int64_t number = static_cast<int64_t>(mine.uses.size());
    mine.uses.push_back(use);
    mine.users.Put(range, number, [&](const int64_t* other) {
      const Use& old = mine.uses[static_cast<size_t>(*other)];
      const bool over = IsOfNextStep(c, old.begin) || clocks_.IsOver(c, old.end, moment);
      if (!over) Report(c, range, old, use);
      return true;
    });
  }

  int64_t SizeOf(int c, const ClassEvent& event) const {
    const StepClass& walk = WalkOf(c);
    return static_cast<int64_t>(event.transfer ? walk.transfers.size() : walk.actions.size());
  }
  // What is wrong inside the second step is so in the first.
  bool IsOfNextStep(int c, const ClassEvent& event) const {
    return event.index >= SizeOf(c, event);
  }

  std::string Name(int c, const ClassEvent& event) const {
    const StepClass& walk = WalkOf(c);
    const int64_t size = SizeOf(c, event);
    const size_t at = static_cast<size_t>(event.index % size);
    const std::string name = event.transfer ? NameOf(walk.transfers[at].transfer->ref, *walk.chunks)
                                            : NameOf(walk.actions[at].action->ref, *walk.chunks);
    return absl::StrCat(name, IsOfNextStep(c, event) ? " of the next step" : "");
  }

  void Report(int c, const Range& range, const Use& old, const Use& use) {
    findings_.Add("order_v6", PlaceOf(tables_, WalkOf(c)),
                  absl::StrCat(Name(c, use.begin), " may write ", ToString(range), " before ",
                               Name(c, old.end), " is over, which uses what ", Name(c, old.begin),
                               " put there; it must wait for that"));
  }

  const StepTables& tables_;
  OrderClocks clocks_;
  std::vector<ClassUses> classes_;
  std::vector<int64_t> begun_;  // by class
  Diagnostics& findings_;
};

}  // namespace

void CheckSteps(const StepTables& tables, const Footprints& footprints, Diagnostics* findings) {
  if (!OrderClocks::Fits(tables, kSteps)) {
    findings->Add("order_v9", tables.eval ? "evaluation" : "training",
                  absl::StrCat(tables.classes.size(),
                               " classes have too many actions for this proof to hold in memory"));
    return;
  }
  Diagnostics waits;
  StepCheck check(tables, footprints, &waits);
  StepWalker walker(tables, kSteps, &check);
  if (walker.Run()) {
    findings->Append(waits);
    if (check.IsExhausted()) {
      findings->Add("order_v9", tables.eval ? "evaluation" : "training",
                    "transfers wait for each other in too many ways for this proof");
    }
  } else {
    ReportDeadlock(tables, walker, findings);
  }
}

}  // namespace mgc
