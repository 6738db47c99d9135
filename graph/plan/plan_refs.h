// What a plan's references say, and where in its lists they point.

#ifndef MGC_GRAPH_PLAN_PLAN_REFS_H_
#define MGC_GRAPH_PLAN_PLAN_REFS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/plan/plan.h"

namespace mgc {

// Whether `i` is the place of something in `list`.
template <typename List>
bool IsIndex(int64_t i, const List& list) {
  return i >= 0 && i < static_cast<int64_t>(list.size());
}

inline bool IsSend(TransferKind kind) {
  return kind == TransferKind::kSendForward || kind == TransferKind::kSendBackward;
}
inline bool IsForward(TransferKind kind) {
  return kind == TransferKind::kSendForward || kind == TransferKind::kRecvForward;
}
template <typename Ref>
bool SameRef(const Ref& a, const Ref& b) {
  return a.kind == b.kind && a.chunk == b.chunk && a.micro_batch == b.micro_batch;
}
// A send's receive, a receive's send.
inline TransferKind OtherEnd(TransferKind kind) {
  if (IsForward(kind)) {
    return IsSend(kind) ? TransferKind::kRecvForward : TransferKind::kSendForward;
  }
  return IsSend(kind) ? TransferKind::kRecvBackward : TransferKind::kSendBackward;
}
// The stage of a transfer's other end, given its own.
inline int OtherStage(TransferKind kind, int stage) {
  return stage + (IsSend(kind) == IsForward(kind) ? 1 : -1);
}
// The action whose result a send moves.
inline ActionRef SenderOf(const TransferRef& send) {
  return {IsForward(send.kind) ? ActionKind::kForward : ActionKind::kBackward, send.chunk,
          send.micro_batch};
}

// How many kinds of references of a sort there are.
inline constexpr int kNumRefKinds = 4;

// Places of entries of a program's list: of a kind and chunk by micro-batch. Walks of long steps
// look up nearly nothing else, so that places of neighbours lie beside each other; whatever numbers
// a file names, there is no more room than a little for each entry.
class RefPlaces {
 public:
  // False when it is there already.
  template <typename Ref>
  bool Add(const Ref& ref, int place) {
    if (Find(ref) >= 0) return false;
    const size_t lane = LaneOf(ref), at = static_cast<size_t>(ref.micro_batch);
    if (lane >= lanes_.size()) lanes_.resize(lane + 1);
    std::vector<int>& places = lanes_[lane];
    if (at >= places.size() + kMostGap) return far_.emplace(std::make_pair(lane, at), place).second;
    if (at >= places.size()) places.resize(at + 1, -1);
    places[at] = place;
    return true;
  }
  // -1 when absent.
  template <typename Ref>
  int Find(const Ref& ref) const {
    const size_t lane = LaneOf(ref), at = static_cast<size_t>(ref.micro_batch);
    if (lane < lanes_.size() && at < lanes_[lane].size() && lanes_[lane][at] >= 0) {
      return lanes_[lane][at];
    }
    const auto it = far_.find(std::make_pair(lane, at));
    return it == far_.end() ? -1 : it->second;
  }

 private:
  static constexpr size_t kMostGap = 64;

  template <typename Ref>
  static size_t LaneOf(const Ref& ref) {
    return static_cast<size_t>(ref.chunk) * kNumRefKinds + static_cast<size_t>(ref.kind);
  }

  std::vector<std::vector<int>> lanes_;
  absl::flat_hash_map<std::pair<size_t, size_t>, int> far_;
};

// Places of actions and transfers in the lists of a program. Refs name chunks and micro-batches
// that the plan has.
class ProgramIndex {
 public:
  // False when the list has it already.
  bool Add(const ActionRef& ref, int place) { return actions_.Add(ref, place); }
  bool Add(const TransferRef& ref, int place) { return transfers_.Add(ref, place); }
  // -1 when absent.
  int Find(const ActionRef& ref) const { return actions_.Find(ref); }
  int Find(const TransferRef& ref) const { return transfers_.Find(ref); }

 private:
  RefPlaces actions_;
  RefPlaces transfers_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PLAN_REFS_H_
