#include "runtime/run/deadlock.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/run/where.h"

namespace mgc {
namespace {

// A queue of a rank: what waits for what.
struct Queue {
  int rank = 0;
  bool comm = false;

  friend bool operator==(const Queue& a, const Queue& b) {
    return a.rank == b.rank && a.comm == b.comm;
  }
};

constexpr int kNobody = -1;

class Description {
 public:
  Description(const LoadedPlan& plan, const std::vector<Rank>& ranks, bool eval)
      : plan_(plan), ranks_(ranks), eval_(eval) {}

  std::string Text() const {
    std::string text = "deadlock: no rank can go on\n";
    for (const Rank& rank : ranks_) absl::StrAppend(&text, "  ", StateOf(rank), "\n");
    absl::StrAppend(&text, "  cycle of waits: ", Cycle());
    return text;
  }

 private:
  const Rank& RankOf(int rank) const {
    return ranks_[static_cast<size_t>(rank - plan_.local.begin)];
  }

  int ClassOf(const Rank& rank) const {
    return plan_.ranks[static_cast<size_t>(rank.id)].rank_class;
  }

  std::string ItemOf(const Rank& rank) const {
    const CommItem* head = rank.Head();
    return head == nullptr ? "its end" : NameOfItem(plan_.tables(eval_), ClassOf(rank), *head);
  }

  std::string StateOf(const Rank& rank) const {
    std::string text = absl::StrCat("rank ", rank.id, ": ");
    if (rank.state == RankState::kFinished) {
      absl::StrAppend(&text, "computation finished");
    } else {
      absl::StrAppend(&text, ActionOf(rank), " ", PlaceOf(rank), " waits for ", NeedOf(rank));
    }
    const std::string why = rank.Head() == nullptr ? "" : absl::StrCat(", waiting for ", Why(rank));
    return absl::StrCat(text, "; communication stands at ", ItemOf(rank), why);
  }

  std::string ActionOf(const Rank& rank) const {
    return NameOfAction(plan_.tables(eval_), ClassOf(rank), rank.action);
  }

  static std::string PlaceOf(const Rank& rank) {
    if (!rank.inside) return "before its first instruction";
    const LoadedCall& call = (*rank.program->calls[rank.action])[rank.call];
    return absl::StrCat("in `", call.segment->segment->name, "`[", rank.instr, "]",
                        call.call->layer >= 0 ? absl::StrCat(" layer ", call.call->layer) : "");
  }

  // The first thing of its queue of communication that the computation lacks.
  std::string NeedOf(const Rank& rank) const {
    int64_t collectives = 0;
    int64_t transfers = 0;
    for (const CommItem& item : rank.program->comm) {
      int64_t& count = item.transfer >= 0 ? transfers : collectives;
      const int64_t need = item.transfer >= 0 ? rank.transfers_needed : rank.collectives_needed;
      const int64_t done = item.transfer >= 0 ? rank.transfers_done : rank.collectives_done;
      if (++count == need && done < need)
        return NameOfItem(plan_.tables(eval_), ClassOf(rank), item);
    }
    return "communication that is not listed";
  }

  // Whom the head of a rank's queue of communication waits for first.
  Queue Blocker(const Rank& rank) const {
    const CommItem& head = *rank.Head();
    if (head.transfer >= 0) {
      const StepTransfer& transfer = rank.program->steps->transfers[head.transfer];
      if (rank.actions_done < transfer.actions_needed) return {rank.id, false};
      const int peer = plan_.classes[transfer.transfer->peer].ranks[rank.index];
      if (!plan_.local.Contains(peer)) return {kNobody, true};
      return BlockerAt(RankOf(peer),
                       [&](const CommItem& item) { return item.transfer == transfer.peer_index; });
    }
    for (int member : plan_.GroupOf(head.group, rank.id)) {
      if (!plan_.local.Contains(member)) continue;
      const Queue blocker = BlockerAt(RankOf(member), [&](const CommItem& item) {
        return item.transfer < 0 && item.signature == head.signature;
      });
      if (blocker.rank != kNobody) return blocker;
    }
    return {kNobody, true};
  }

  // Which queue of `rank` keeps an item from running, if any: its communication stands elsewhere,
  // or its computation has not come so far.
  template <typename Match>
  Queue BlockerAt(const Rank& rank, Match matches) const {
    const CommItem* head = rank.Head();
    if (head == nullptr || !matches(*head)) return {rank.id, true};
    const bool ready =
        head->transfer >= 0
            ? rank.actions_done >= rank.program->steps->transfers[head->transfer].actions_needed
            : rank.started > head->ordinal;
    return ready ? Queue{kNobody, true} : Queue{rank.id, false};
  }

  std::string Why(const Rank& rank) const {
    const Queue blocker = Blocker(rank);
    if (blocker.rank == kNobody) return "nothing";
    const std::string whose =
        blocker.rank == rank.id ? "its own" : absl::StrCat("rank ", blocker.rank, "'s");
    return absl::StrCat(whose, blocker.comm ? " communication" : " computation");
  }

  bool Follow(Queue* queue) const {
    const Rank& rank = RankOf(queue->rank);
    if (!queue->comm) {
      if (rank.state == RankState::kFinished) return false;
      queue->comm = true;
      return true;
    }
    if (rank.Head() == nullptr) return false;
    const Queue next = Blocker(rank);
    if (next.rank == kNobody) return false;
    *queue = next;
    return true;
  }

  std::string Label(const Queue& queue) const {
    const Rank& rank = RankOf(queue.rank);
    const bool finished = rank.state == RankState::kFinished;
    return absl::StrCat("rank ", queue.rank, " ",
                        queue.comm ? ItemOf(rank)
                        : finished ? "finished"
                                   : ActionOf(rank));
  }

  std::string Cycle() const {
    Queue at;
    for (const Rank& rank : ranks_) {
      if (rank.state == RankState::kFinished && rank.Head() == nullptr) continue;
      at = {rank.id, rank.state == RankState::kFinished};
      break;
    }
    std::vector<Queue> path;
    while (std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      if (!Follow(&at)) break;
    }
    const auto begin = std::find(path.begin(), path.end(), at);
    const bool closed = !(at == path.back() && begin + 1 == path.end());
    std::vector<std::string> labels;
    for (auto it = closed ? begin : path.begin(); it != path.end(); ++it) {
      labels.push_back(Label(*it));
    }
    if (closed) labels.push_back(Label(at));
    return absl::StrCat(absl::StrJoin(labels, " -> "), closed ? "" : ", which goes on no more");
  }

  const LoadedPlan& plan_;
  const std::vector<Rank>& ranks_;
  const bool eval_;
};

}  // namespace

std::string DescribeDeadlock(const LoadedPlan& plan, const std::vector<Rank>& ranks, bool eval) {
  return Description(plan, ranks, eval).Text();
}

}  // namespace mgc
