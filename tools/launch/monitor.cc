#include "tools/launch/monitor.h"

#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mgc {
namespace {

// Of a signal that asks a run to stop, else null.
const char* NameOfStop(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return nullptr;
  }
}

}  // namespace

void Say(absl::string_view command, absl::string_view text) {
  std::string lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&lines, command, ": ", line, "\n");
  }
  // One call, so that lines of several processes do not mix.
  if (write(STDERR_FILENO, lines.data(), lines.size()) < 0) return;
}

RunSignals::RunSignals() {
  sigemptyset(&signals_);
  for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

int RunSignals::Next(int milliseconds) const {
  timespec time = {};
  time.tv_sec = milliseconds / 1000;
  time.tv_nsec = static_cast<int64_t>(milliseconds % 1000) * 1'000'000;
  const int signal = sigtimedwait(&signals_, nullptr, &time);
  return signal > 0 ? signal : 0;
}

void RunSignals::LeaveToLauncher() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  Obey();
}

void RunSignals::Obey() {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

absl::optional<std::string> Monitor::Look(int64_t now_ns) {
  if (!watches_) return absl::nullopt;
  if (const auto slow = watchdog_.FindSlow()) Say(command_, absl::StrCat("warning: ", *slow));
  return watchdog_.Look(now_ns);
}

bool Monitor::Take(int signal, int64_t now_ns, bool says) const {
  if (signal == SIGUSR2 && says) Say(command_, waits_.Table(now_ns));
  const char* const name = NameOfStop(signal);
  if (name == nullptr) return false;
  const bool again = board_.AskToStop() > 1;
  if (says) {
    Say(command_, absl::StrCat(name, again ? " again: ends at once, nothing saved"
                                           : ": stops after this step; once more ends at once"));
  }
  return again;
}

}  // namespace mgc
