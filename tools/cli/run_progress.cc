#include "tools/cli/run_progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mgc {
namespace {

constexpr int64_t kBarWidth = 20;
constexpr int64_t kSecondsOfHour = 3600;

std::string ClockText(int64_t seconds) {
  const int64_t minutes = seconds / 60;
  if (seconds < kSecondsOfHour) return absl::StrFormat("%d:%02d", minutes, seconds % 60);
  return absl::StrFormat("%d:%02d:%02d", minutes / 60, minutes % 60, seconds % 60);
}

}  // namespace

std::string ProgressText(int64_t step, int64_t steps, double seconds_left) {
  const double share = static_cast<double>(step) / static_cast<double>(steps);
  const auto filled = static_cast<size_t>(share * kBarWidth);
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar.push_back('>');
  bar.resize(kBarWidth, ' ');
  std::string text = absl::StrFormat("[%s] %d%% | step %d of %d", bar,
                                     static_cast<int64_t>(share * 100), step, steps);
  if (seconds_left >= 0) {
    absl::StrAppend(&text, " | ", ClockText(std::llround(seconds_left)), " left");
  }
  return text;
}

RunProgress::RunProgress(int64_t steps) : steps_(steps), visible_(isatty(STDERR_FILENO) != 0) {}

void RunProgress::Take(int64_t step, bool warm_up) {
  const Clock::time_point now = Clock::now();
  double left = -1;
  if (timed_from_ >= 0) {
    const double seconds = std::chrono::duration<double>(now - since_).count();
    left = seconds / static_cast<double>(step - timed_from_) * static_cast<double>(steps_ - step);
  } else if (!warm_up) {
    timed_from_ = step;
    since_ = now;
  }
  text_ = ProgressText(step, steps_, left);
}

void RunProgress::Clear() {
  if (!visible_ || text_.empty()) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

void RunProgress::Show() {
  if (!visible_) return;
  std::fputs(text_.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace mgc
