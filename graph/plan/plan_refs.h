// What a plan's references say, and where in its lists they point.

#ifndef MGC_GRAPH_PLAN_PLAN_REFS_H_
#define MGC_GRAPH_PLAN_PLAN_REFS_H_

#include <cstddef>
#include <cstdint>

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
inline constexpr int NumKinds(const ActionRef& /*ref*/) { return 4; }
inline constexpr int NumKinds(const TransferRef& /*ref*/) { return 4; }

// Places of actions and transfers in the lists of a program. Refs name chunks below 2^29 and
// micro-batches below 2^32.
class ProgramIndex {
 public:
  // False when the list has it already.
  bool Add(const ActionRef& ref, int place) { return actions_.emplace(KeyOf(ref), place).second; }
  bool Add(const TransferRef& ref, int place) {
    return transfers_.emplace(KeyOf(ref), place).second;
  }
  // -1 when absent.
  int Find(const ActionRef& ref) const { return FindIn(actions_, KeyOf(ref)); }
  int Find(const TransferRef& ref) const { return FindIn(transfers_, KeyOf(ref)); }

 private:
  using Places = absl::flat_hash_map<uint64_t, int>;

  template <typename Ref>
  static uint64_t KeyOf(const Ref& ref) {
    return (static_cast<uint64_t>(ref.chunk) << 3 | static_cast<uint64_t>(ref.kind)) << 32 |
           static_cast<uint64_t>(ref.micro_batch);
  }
  static int FindIn(const Places& places, uint64_t key) {
    const auto it = places.find(key);
    return it == places.end() ? -1 : it->second;
  }

  Places actions_;
  Places transfers_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PLAN_REFS_H_
