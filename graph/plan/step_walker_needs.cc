// What the queues of a walk stand at and wait for, in words.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/plan/step_walker.h"

namespace mgc {
namespace {

constexpr size_t kMostNeeds = 64;  // that a stopped queue names

}  // namespace

std::string StepWalker::NameOfSite(const InstrSite& site) const {
  const std::vector<Chunk>& chunks = *ClassOf(site.class_index).chunks;
  return absl::StrCat(site.instr->op->name, " ", site.instr->collective, " of ", site.segment->name,
                      site.call->layer >= 0 ? absl::StrCat(" layer ", site.call->layer) : "",
                      " in ", NameOf(site.action->ref, chunks));
}

// Of the collective with this number in the step.
std::string StepWalker::NameOfCollective(int c, int64_t of_step) const {
  const StepClass& walk = ClassOf(c);
  for (size_t a = walk.actions.size(); a-- > 0;) {
    int64_t first = walk.actions[a].first_collective;
    if (first > of_step) continue;
    for (const Call& call : *walk.actions[a].calls) {
      const StepSegment& segment = SegmentOf(call);
      const int64_t at = of_step - first;
      if (at < static_cast<int64_t>(segment.starts.size())) {
        return NameOfSite({c, 0, walk.actions[a].action, &call, segment.segment,
                           segment.starts[static_cast<size_t>(at)].instr});
      }
      first += static_cast<int64_t>(segment.starts.size());
    }
  }
  return "a collective that is not listed";
}

std::string StepWalker::Head(const WalkQueue& queue) const {
  const ClassState& state = classes_[static_cast<size_t>(queue.class_index)];
  const StepClass& walk = ClassOf(queue.class_index);
  if (queue.communication) {
    if (!HeadIsTransfer(queue.class_index)) return NameOfSite(HeadSite(queue.class_index));
    return NameOf(walk.transfers[state.transfers_of_step].transfer->ref, *walk.chunks);
  }
  const StepAction& action = walk.actions[state.action];
  std::string name = NameOf(action.action->ref, *walk.chunks);
  if (!state.inside) return name;
  const Call& call = (*action.calls)[state.call];
  return absl::StrCat(name, " in ", SegmentOf(call).segment->name,
                      call.layer >= 0 ? absl::StrCat(" layer ", call.layer) : "");
}

std::vector<WalkNeed> StepWalker::Needs(const WalkQueue& queue) const {
  std::vector<WalkNeed> needs;
  const int c = queue.class_index;
  if (IsAtEnd(queue)) return needs;
  if (queue.communication) {
    if (HeadIsTransfer(c)) {
      AddTransferNeeds(c, &needs);
    } else {
      AddCollectiveNeeds(c, &needs);
    }
    return needs;
  }
  const ClassState& state = classes_[static_cast<size_t>(c)];
  const StepClass& walk = ClassOf(c);
  const StepAction& action = walk.actions[state.action];
  const WalkQueue own{c, true};
  if (state.inside) {
    const Call& call = (*action.calls)[state.call];
    const StepSegment& segment = SegmentOf(call);
    int64_t collective = NeededByCall(c) - 1;
    if (state.in_call) {
      const Instr& instr =
          wants_instrs_ ? segment.segment->instrs[state.instr] : *segment.points[state.instr];
      collective = state.call_first + instr.collective;
    }
    needs.push_back({own, NameOfCollective(c, collective)});
    return needs;
  }
  for (const TransferRef& ref : action.action->waits) {
    if (TransfersDone(c, walk.IndexOf(ref) + 1)) continue;
    needs.push_back({own, NameOf(ref, *walk.chunks)});
  }
  return needs;
}

void StepWalker::AddTransferNeeds(int c, std::vector<WalkNeed>* needs) const {
  const StepTransfer& mine =
      ClassOf(c).transfers[classes_[static_cast<size_t>(c)].transfers_of_step];
  const int peer = mine.peer_class;
  const bool has_peer = mine.peer_index >= 0;
  const StepTransfer* other =
      has_peer ? &ClassOf(peer).transfers[static_cast<size_t>(mine.peer_index)] : nullptr;
  for (const auto& [end, transfer] : {std::make_pair(c, &mine), std::make_pair(peer, other)}) {
    if (transfer == nullptr || TransferCanRun(end, *transfer)) continue;
    const ClassState& state = classes_[static_cast<size_t>(end)];
    const StepClass& walk = ClassOf(end);
    const bool at_head =
        HeadIsTransfer(end) && &walk.transfers[state.transfers_of_step] == transfer;
    if (!at_head) {
      needs->push_back({{end, true}, NameOf(transfer->transfer->ref, *walk.chunks)});
      continue;
    }
    const StepAction& last = walk.actions[static_cast<size_t>(transfer->actions_needed - 1)];
    needs->push_back({{end, false}, NameOf(last.action->ref, *walk.chunks)});
  }
}

void StepWalker::AddCollectiveNeeds(int c, std::vector<WalkNeed>* needs) const {
  const StepStart& start = *HeadStart(c);
  const std::string name = NameOfSite(HeadSite(c));
  if (!HasStarted(c)) needs->push_back({{c, false}, name});
  if (start.group == kOwnGroup) return;
  for (int member : tables_.groups[static_cast<size_t>(start.group)]) {
    if (member == c || needs->size() >= kMostNeeds) continue;
    const StepStart* other = HeadStart(member);
    const bool same_step = classes_[static_cast<size_t>(member)].comm_step ==
                           classes_[static_cast<size_t>(c)].comm_step;
    if (other == nullptr || other->signature != start.signature || !same_step) {
      needs->push_back({{member, true},
                        absl::StrCat("its ", start.instr->op->name, " over ",
                                     tables_.group_names[static_cast<size_t>(start.group)])});
    } else if (!HasStarted(member)) {
      needs->push_back({{member, false}, NameOfSite(HeadSite(member))});
    }
  }
}

}  // namespace mgc
