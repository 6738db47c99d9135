// Holds up the updates of a process's ranks while somebody reads what they would write: parameters,
// states and what steps carry on, which nothing else writes (memory_v6, docs/verify.md).

#ifndef MGC_RUNTIME_RUN_UPDATE_GATE_H_
#define MGC_RUNTIME_RUN_UPDATE_GATE_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace mgc {

// Guarded by the workers' mutex.
class UpdateGate {
 public:
  bool closed() const { return closed_; }
  // Forgets how long ranks have waited before.
  void Close() {
    closed_ = true;
    held_ns_ = 0;
  }
  // A rank stands before its update, and is blocked.
  void Hold(int place, int64_t now_ns) {
    if (held_.empty()) since_ns_ = now_ns;
    held_.push_back(place);
  }
  // The places of ranks that wait, which are let go.
  std::vector<int> Open(int64_t now_ns) {
    closed_ = false;
    if (!held_.empty()) held_ns_ = now_ns - since_ns_;
    return std::exchange(held_, {});
  }
  const std::vector<int>& held() const { return held_; }
  // From when the first rank came until the gate was opened.
  int64_t held_ns() const { return held_ns_; }

 private:
  bool closed_ = false;
  std::vector<int> held_;
  int64_t since_ns_ = 0;
  int64_t held_ns_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_UPDATE_GATE_H_
