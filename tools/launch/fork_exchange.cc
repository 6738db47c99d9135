#include "tools/launch/fork_exchange.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {

// A process has a slot for even and one for odd rounds: nobody writes the next but one before all
// have read this one, since it waits for their next.
struct ForkExchange::Slot {
  std::atomic<int64_t> round;  // that it holds, from 1
  int64_t size;
  char bytes[kMostBytes];
};

int64_t ForkExchange::Bytes(int processes) {
  return 2 * processes * static_cast<int64_t>(sizeof(Slot));
}

ForkExchange::Slot& ForkExchange::SlotOf(int process, int64_t round) const {
  return reinterpret_cast<Slot*>(memory_)[2 * process + round % 2];
}

absl::StatusOr<std::vector<std::string>> ForkExchange::Gather(const std::string& mine) {
  if (mine.size() > size_t{kMostBytes}) {
    return absl::InternalError(absl::StrCat("processes tell each other at most ", kMostBytes,
                                            " bytes at their start, not ", mine.size()));
  }
  ++round_;
  Slot& own = SlotOf(self_, round_);
  own.size = static_cast<int64_t>(mine.size());
  std::memcpy(own.bytes, mine.data(), mine.size());
  own.round.store(round_, std::memory_order_release);
  std::vector<std::string> all;
  for (int process = 0; process < processes_; ++process) {
    const Slot& theirs = SlotOf(process, round_);
    while (theirs.round.load(std::memory_order_acquire) != round_) {
      MGC_RETURN_IF_ERROR(check_());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    all.emplace_back(theirs.bytes, static_cast<size_t>(theirs.size));
  }
  return all;
}

}  // namespace mgc
