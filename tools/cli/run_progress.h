// How far a run is, as a bar on the terminal.

#ifndef MGC_TOOLS_CLI_RUN_PROGRESS_H_
#define MGC_TOOLS_CLI_RUN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace mgc {

// `[=======>            ] 38% | step 38 of 100 | 1:02:05 left`; without an estimate below 0
// seconds the last part is missing.
std::string ProgressText(int64_t step, int64_t steps, double seconds_left);

// A bar on stderr, below what else is printed; nothing where stderr is no terminal.
class RunProgress {
 public:
  explicit RunProgress(int64_t steps);
  ~RunProgress() { Clear(); }
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  // Behind step `step`; `warm_up` steps count for no estimate.
  void Take(int64_t step, bool warm_up);
  // Before something else is printed; Show brings the bar back.
  void Clear();
  void Show();

 private:
  using Clock = std::chrono::steady_clock;

  const int64_t steps_;
  const bool visible_;
  std::string text_;
  int64_t timed_from_ = -1;  // the step at whose end `since_` was; -1: none yet
  Clock::time_point since_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_RUN_PROGRESS_H_
