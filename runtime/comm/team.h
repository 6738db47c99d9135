// The processes of a run among themselves, between steps: what one tells all others, and errors
// that all share.
//
// Every process calls the same functions in the same order. They wait for the others, and end with
// the run's error when it is aborted. The first process gathers and tells all.

#ifndef MGC_RUNTIME_COMM_TEAM_H_
#define MGC_RUNTIME_COMM_TEAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

class Communicator;

class Team {
 public:
  // `communicator`, open, must outlive the team; null: one process.
  explicit Team(Communicator* communicator) : communicator_(communicator) {}

  // `on_wait` is told when this process begins and ends to wait for others.
  void Observe(std::function<void(bool waits)> on_wait) { on_wait_ = std::move(on_wait); }

  // Tells the observer that this process comes on: it does something long while others wait.
  void ComesOn() {
    if (on_wait_) on_wait_(false);
  }

  int self() const;
  int size() const;
  // Whether this process speaks for all: to users, and for files that there is one of.
  bool is_lead() const { return self() == 0; }

  // What every process gives, in their order.
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine);
  // What the first process gives.
  absl::StatusOr<std::string> TakeFromLead(absl::string_view given);
  // OK when all give OK; else the first process's error that gives one, with its number before it
  // where it is another process.
  absl::Status Agree(const absl::Status& mine);
  // By how many nanoseconds this process's clock is ahead of the first one's, as of now: hosts have
  // clocks of their own. Of some round trips the shortest counts, and clocks that agree within it
  // are the same. `now_ns` reads the clock.
  absl::StatusOr<int64_t> ClockAhead(absl::FunctionRef<int64_t()> now_ns);

 private:
  absl::Status Send(int to, absl::string_view bytes);
  absl::StatusOr<std::string> Receive(int from);

  absl::StatusOr<std::vector<std::string>> GatherUnseen(absl::string_view mine);
  absl::StatusOr<int64_t> ClockAheadUnseen(absl::FunctionRef<int64_t()> now_ns);

  Communicator* const communicator_;
  std::function<void(bool waits)> on_wait_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TEAM_H_
