// Processes forked from a test, and what they have in common: memory that was mapped before.

#ifndef MGC_RUNTIME_COMM_TESTING_FORKED_WORLD_H_
#define MGC_RUNTIME_COMM_TESTING_FORKED_WORLD_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mgc {

class ForkedWorld {
 public:
  explicit ForkedWorld(int processes);
  ~ForkedWorld();
  ForkedWorld(const ForkedWorld&) = delete;
  ForkedWorld& operator=(const ForkedWorld&) = delete;

  int processes() const { return processes_; }

  // In the parent, once: runs `body` in as many children, with their numbers; an error that it
  // gives ends the run of all. Their statuses;
  // DeadlineExceeded of one that had to be killed, Aborted of one that died.
  std::vector<absl::Status> Run(const std::function<absl::Status(int self)>& body,
                                std::chrono::seconds deadline);

  // In a child: what every child gives, short strings. Ends with the world's error.
  absl::StatusOr<std::vector<std::string>> Exchange(int self, const std::string& mine);
  // In a child: ends the run of all with an error; the first one counts.
  void Abort(const absl::Status& status);
  absl::Status status() const;

 private:
  struct Common;

  const int processes_;
  Common* common_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TESTING_FORKED_WORLD_H_
