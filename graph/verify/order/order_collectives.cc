// order_v3, v7, v8.

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/verify/order/order_internal.h"

namespace mgc {
namespace {

std::string NameOfCall(const Segment& segment, const Call& call) {
  return absl::StrCat(segment.name, call.layer >= 0 ? absl::StrCat(" layer ", call.layer) : "");
}

// One started instruction, in a class' order of communication.
struct Listed {
  const StepStart* start = nullptr;
  const StepAction* action = nullptr;
  const Call* call = nullptr;
};

// The collectives of a class that run over a group of classes, of one step.
std::vector<Listed> SequenceOf(const StepTables& tables, const StepClass& walk, int group) {
  std::vector<Listed> sequence;
  for (const StepAction& action : walk.actions) {
    for (const Call& call : *action.calls) {
      for (const StepStart& start : tables.segments[static_cast<size_t>(call.segment)].starts) {
        if (start.group == group) sequence.push_back({&start, &action, &call});
      }
    }
  }
  return sequence;
}

std::string NameOf(const StepTables& tables, const StepClass& walk, const Listed& listed) {
  const Segment& segment = tables.plan.segments[static_cast<size_t>(listed.call->segment)];
  std::string name = absl::StrCat(listed.start->instr->op->name, " of ");
  for (size_t i = 0; i < listed.start->instr->inputs.size() && i < 4; ++i) {
    const Slot& slot = segment.slots[static_cast<size_t>(listed.start->instr->inputs[i])];
    absl::StrAppend(&name, i > 0 ? ", " : "", slot.type.ToString());
  }
  return absl::StrCat(name, " in ", NameOfCall(segment, *listed.call), " of ",
                      NameOf(listed.action->action->ref, *walk.chunks));
}

// The classes of a group run the same collectives over it, in one order.
void CheckGroup(const StepTables& tables, int group, Diagnostics* findings) {
  const std::vector<int>& members = tables.groups[static_cast<size_t>(group)];
  const std::string& name = tables.group_names[static_cast<size_t>(group)];
  std::vector<Listed> first;
  for (const StepClass& walk : tables.classes) {
    const int c = walk.plan_class->coordinate;
    const std::vector<Listed> sequence = SequenceOf(tables, walk, group);
    const bool is_member = std::find(members.begin(), members.end(), c) != members.end();
    if (!is_member && !sequence.empty()) {
      findings->Add("order_v3", PlaceOf(tables, walk),
                    absl::StrCat("runs ", NameOf(tables, walk, sequence[0]), " over ", name,
                                 ", of which it is no member"));
    }
    if (!is_member) continue;
    if (c == members[0]) {
      first = sequence;
      continue;
    }
    const StepClass& other = tables.classes[static_cast<size_t>(members[0])];
    for (size_t i = 0; i < std::max(first.size(), sequence.size()); ++i) {
      const bool both = i < first.size() && i < sequence.size();
      if (both && first[i].start->signature == sequence[i].start->signature) continue;
      findings->Add(
          "order_v3", PlaceOf(tables, walk),
          absl::StrCat("collective ", i, " over ", name, " is ",
                       i < sequence.size() ? NameOf(tables, walk, sequence[i]) : "missing",
                       "; class ", members[0], " has ",
                       i < first.size() ? NameOf(tables, other, first[i]) : "none"));
      break;
    }
  }
}

constexpr size_t kMostBusy = size_t{1} << 17;  // slots of collectives that run at once

// Goes through the instructions of a class in the order of computation, with what collectives that
// have been started and not been waited for use.
class BusyCheck {
 public:
  BusyCheck(const StepTables& tables, const StepClass& walk, Diagnostics* findings)
      : tables_(tables), walk_(walk), findings_(*findings) {}

  void Run() {
    for (const StepAction& action : walk_.actions) {
      if (!IsLooked(action.action->ref)) continue;
      action_ = &action;
      const int64_t before = started_;
      for (const Call& call : *action.calls) RunCall(call);
      CheckWaited(before);
    }
  }

 private:
  struct Busy {
    Range range;
    bool written = false;
    const Call* call = nullptr;
    const Instr* instr = nullptr;
    const StepAction* action = nullptr;
    int64_t start = 0;  // starts in the background before it; of one that is not, -1
  };

  // The first micro-batch finds what copies leave running, the last has a backward of its own;
  // those between do what the first does, later.
  bool IsLooked(const ActionRef& ref) const {
    return !IsOfMicroBatch(ref.kind) || ref.micro_batch == 0 ||
           ref.micro_batch == tables_.plan.num_micro_batches - 1;
  }

  void RunCall(const Call& call) {
    call_ = &call;
    if (call.running != kAnyRunning) {
      Erase([&](const Busy& busy) {
        return busy.start >= 0 && busy.start < started_ - call.running;
      });
    }
    const StepSegment& step = tables_.segments[static_cast<size_t>(call.segment)];
    const Segment& segment = *step.segment;
    for (const Instr& instr : segment.instrs) {
      if (instr.kind == InstrKind::kWait) {
        Erase([&](const Busy& busy) {
          return busy.call == &call && busy.instr->collective == instr.collective;
        });
        continue;
      }
      if (!busy_.empty()) CheckInstr(segment, instr);
      if (instr.kind != InstrKind::kStart) continue;
      const bool background = step.starts[static_cast<size_t>(instr.collective)].background;
      AddBusy(segment, instr, background ? started_++ : -1);
    }
  }

  // The makings of working copies and reductions run on when their action ends, until the update
  // ends at the latest; other collectives do not.
  void CheckWaited(int64_t before) {
    const ActionRef& ref = action_->action->ref;
    const bool ends = ref.kind == ActionKind::kUpdate;
    if (!ends && action_->calls != &ChunkOf(ref).forward &&
        action_->calls != &ChunkOf(ref).backward) {
      return;
    }
    const auto is_left = [&](const Busy& busy) {
      return ends || busy.start < 0 || busy.start >= before;
    };
    for (const auto& [at, busy] : busy_) {
      if (!is_left(busy)) continue;
      call_ = busy.call;
      Report("order_v8", absl::StrCat("nothing waits for ", Name(busy)));
      break;
    }
    Erase(is_left);
  }

  const Chunk& ChunkOf(const ActionRef& ref) const {
    return (*walk_.chunks)[static_cast<size_t>(ref.chunk)];
  }

  template <typename Condition>
  void Erase(Condition condition) {
    for (auto it = busy_.begin(); it != busy_.end();) {
      it = condition(it->second) ? busy_.erase(it) : std::next(it);
    }
  }

  void AddBusy(const Segment& segment, const Instr& instr, int64_t start) {
    for (int number : instr.inputs)
      AddSlot(segment, number, {{}, false, call_, &instr, action_, start});
    for (int number : instr.outputs)
      AddSlot(segment, number, {{}, true, call_, &instr, action_, start});
  }

  void AddSlot(const Segment& segment, int number, Busy busy) {
    busy.range = RangeOf(segment.slots[static_cast<size_t>(number)], *call_, *action_->action);
    if (busy_.size() == kMostBusy) Report("order_v9", "too many collectives run at once");
    if (busy_.size() > kMostBusy) return;
    longest_ = std::max(longest_, busy.range.end - busy.range.begin);
    busy_.emplace(busy.range.begin, std::move(busy));
  }

  void CheckInstr(const Segment& segment, const Instr& instr) {
    for (int number : instr.inputs) CheckSlot(segment, number, false);
    for (int number : instr.outputs) CheckSlot(segment, number, true);
  }

  void CheckSlot(const Segment& segment, int number, bool writes) {
    const Slot& slot = segment.slots[static_cast<size_t>(number)];
    const Range range = RangeOf(slot, *call_, *action_->action);
    for (auto it = busy_.upper_bound(range.begin - longest_);
         it != busy_.end() && it->first < range.end; ++it) {
      const Busy& busy = it->second;
      if (!Overlap(busy.range, range) || (!writes && !busy.written)) continue;
      if (!reported_.insert({busy.instr, &slot}).second) continue;
      Report("order_v7",
             absl::StrCat(writes ? "writes `" : "reads `", slot.name, "` at ", ToString(range),
                          " while ", Name(busy), " still ", busy.written ? "writes " : "reads ",
                          ToString(busy.range), "; the wait must come before"));
    }
  }

  std::string Name(const Busy& busy) const {
    const Segment& segment = tables_.plan.segments[static_cast<size_t>(busy.call->segment)];
    return absl::StrCat("collective ", busy.instr->collective, " ", busy.instr->op->name, " of ",
                        NameOfCall(segment, *busy.call), " in ",
                        NameOf(busy.action->action->ref, *walk_.chunks));
  }

  void Report(absl::string_view label, const std::string& text) {
    const Segment* segment =
        call_ == nullptr ? nullptr : &tables_.plan.segments[static_cast<size_t>(call_->segment)];
    findings_.Add(
        label,
        absl::StrCat(PlaceOf(tables_, walk_), ", ", NameOf(action_->action->ref, *walk_.chunks),
                     segment == nullptr ? "" : " " + NameOfCall(*segment, *call_)),
        text);
  }

  const StepTables& tables_;
  const StepClass& walk_;
  Diagnostics& findings_;
  const StepAction* action_ = nullptr;
  const Call* call_ = nullptr;
  std::multimap<int64_t, Busy> busy_;  // by where it begins
  int64_t longest_ = 0;                // no range in it has more bytes
  int64_t started_ = 0;                // of the step, in the background
  absl::flat_hash_set<std::pair<const Instr*, const Slot*>> reported_;
};

}  // namespace

void CheckGroups(const StepTables& tables, Diagnostics* findings) {
  for (size_t g = 0; g < tables.groups.size(); ++g) {
    CheckGroup(tables, static_cast<int>(g), findings);
  }
}

void CheckBusySlots(const StepTables& tables, Diagnostics* findings) {
  for (const StepClass& walk : tables.classes) BusyCheck(tables, walk, findings).Run();
}

}  // namespace mgc
