// Looks after a run while it goes on: whether it comes on, whether somebody wants it to stop or
// wants to know where it is. What it finds it says on stderr, in lines that begin with the
// command's name.

#ifndef MGC_TOOLS_LAUNCH_MONITOR_H_
#define MGC_TOOLS_LAUNCH_MONITOR_H_

#include <csignal>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "runtime/watch/board.h"
#include "runtime/watch/waits.h"
#include "runtime/watch/watchdog.h"
#include "tools/launch/launcher.h"

namespace mgc {

// Prints each line of `text` to stderr at once, behind the command's name.
void Say(absl::string_view command, absl::string_view text);

// The signals of a run: SIGINT, SIGTERM and SIGUSR1 ask it to stop, SIGUSR2 where it is, SIGCHLD
// tells of a process that has ended. Blocked for this thread and those it starts from now on, so
// that one thread takes them when it likes.
class RunSignals {
 public:
  RunSignals();
  // The next one, waited for up to `milliseconds`; 0 when none comes.
  int Next(int milliseconds) const;
  // For a process just forked: all but SIGCHLD are its launcher's affair.
  static void LeaveToLauncher();
  // From now on they end the process, as if nobody took them.
  static void Obey();

 private:
  sigset_t signals_;
};

class Monitor {
 public:
  // `plan` and what `board` stands on must outlive it.
  Monitor(const Plan& plan, const Board& board, const LaunchOptions& options)
      : command_(options.command),
        board_(board),
        watches_(options.watchdog_seconds > 0),
        waits_(plan, board, options.others),
        watchdog_(waits_, board, static_cast<int64_t>(options.watchdog_seconds * 1e9)) {}

  // What keeps the run from going on, if anything does; says who is slow.
  absl::optional<std::string> Look(int64_t now_ns);
  // Does what a signal asks for, and says so where `says` (the table of SIGUSR2 is all that it
  // does). True when it is to end at once: the second time that it is asked to stop.
  bool Take(int signal, int64_t now_ns, bool says = true) const;
  const Waits& waits() const { return waits_; }

 private:
  const std::string command_;
  const Board& board_;
  const bool watches_;
  const Waits waits_;
  Watchdog watchdog_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_MONITOR_H_
