// How processes that one launcher has forked tell each other short strings before there are
// channels: through a piece of memory that they inherit.

#ifndef MGC_TOOLS_LAUNCH_FORK_EXCHANGE_H_
#define MGC_TOOLS_LAUNCH_FORK_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mgc {

class ForkExchange {
 public:
  // Of what a process tells: also a digit for each process of a host.
  static constexpr int kMostBytes = 4096;
  // Bytes of shared, zeroed memory for so many processes.
  static int64_t Bytes(int processes);
  // `check` gives the error that ends the run.
  ForkExchange(char* memory, int processes, int self, std::function<absl::Status()> check)
      : memory_(memory), processes_(processes), self_(self), check_(std::move(check)) {}

  // What every process gives, in their order; at most kMostBytes. All call it, and it waits for
  // them.
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine);

 private:
  struct Slot;
  Slot& SlotOf(int process, int64_t round) const;

  char* const memory_;
  const int processes_;
  const int self_;
  const std::function<absl::Status()> check_;
  int64_t round_ = 0;
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_FORK_EXCHANGE_H_
