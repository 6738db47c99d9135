// A side that is another program: tools/benchmarks/torch_step.py.

#ifndef MGC_TOOLS_BENCHMARKS_CHILD_SIDE_H_
#define MGC_TOOLS_BENCHMARKS_CHILD_SIDE_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

// The program reads lines from its standard input and writes lines to its standard output. It
// begins with `ready`; for each line `step` it does one step and answers with three numbers: the
// step's seconds, those of all its threads, and the most bytes of memory that it has had so far. At
// the end of its input it ends.
class ChildSide : public BenchSide {
 public:
  // `command`: the program, looked for on the path, and its arguments. Returns when the program is
  // ready. Errors: Unavailable when it cannot be started, ends, or says anything else.
  static absl::StatusOr<std::unique_ptr<BenchSide>> Create(const std::vector<std::string>& command);
  // Of a program that has been started already and speaks through `socket`, which the side closes.
  // `pid`: a child that is waited for at the end; 0: none.
  static absl::StatusOr<std::unique_ptr<ChildSide>> Adopt(const std::string& name, int socket,
                                                          pid_t pid);
  ~ChildSide() override;

  absl::StatusOr<StepTime> Step() override;
  // The two halves of a step, so that several programs can do one at the same time.
  absl::Status Ask();
  absl::StatusOr<StepTime> Answer();
  Profile profile() const override { return profile_; }

 private:
  ChildSide(std::string name, int socket, pid_t pid)
      : name_(std::move(name)), socket_(socket), pid_(pid) {}
  absl::StatusOr<std::string> ReadLine();

  const std::string name_;
  const int socket_;
  const pid_t pid_;
  std::string unread_;
  Profile profile_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_CHILD_SIDE_H_
