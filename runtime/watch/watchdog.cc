#include "runtime/watch/watchdog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mgc {
namespace {

// A rank that computes so many times as long as usual, beside the others, is slow, if that is not a
// moment, in so many steps in a row.
constexpr double kSlow = 4;
constexpr int64_t kLeastSlowNs = 50'000'000;
constexpr int64_t kSlowSteps = 2;

}  // namespace

absl::optional<std::string> Watchdog::Look(int64_t now_ns) const {
  const Culprit culprit = waits_.FindCulprit(now_ns, floor_ns_);
  if (culprit.rank < 0) return absl::nullopt;
  return absl::StrCat(waits_.Sentence(culprit), "\n", waits_.Table(now_ns));
}

absl::optional<std::string> Watchdog::FindSlow() {
  usual_.resize(board_.ranks().size());
  const double most = kSlow * TimesUsualOfMost();
  for (size_t r = 0; r < usual_.size(); ++r) {
    const RankProgress& rank = board_.ranks()[r];
    Usual& usual = usual_[r];
    const int64_t busy = rank.busy_ns.get();
    const int64_t step = rank.steps.get();
    if (busy == 0 || usual.told || rank.eval.get() || step == usual.step) continue;
    usual.step = step;
    const bool is_first = usual.busy_ns == 0;
    const bool slow = !is_first && usual_.size() > 1 && busy - usual.busy_ns > kLeastSlowNs &&
                      static_cast<double>(busy) > most * static_cast<double>(usual.busy_ns);
    usual.slow_steps = slow ? usual.slow_steps + 1 : 0;
    if (usual.slow_steps == kSlowSteps) {
      usual.told = true;
      return absl::StrFormat("%s is slow: it computed for %.1f s in its last step, usually %.1f s",
                             waits_.NameOf(static_cast<int64_t>(r)),
                             static_cast<double>(busy) / 1e9,
                             static_cast<double>(usual.busy_ns) / 1e9);
    }
    usual.busy_ns = is_first ? busy : std::min(usual.busy_ns, busy);
  }
  return absl::nullopt;
}

// How many times as long as usual half of the ranks compute, at least 1: what slows them all is no
// fault of a rank.
double Watchdog::TimesUsualOfMost() const {
  std::vector<double> times;
  for (size_t r = 0; r < usual_.size(); ++r) {
    if (usual_[r].busy_ns == 0) continue;
    times.push_back(static_cast<double>(board_.ranks()[r].busy_ns.get()) /
                    static_cast<double>(usual_[r].busy_ns));
  }
  if (times.empty()) return 1;
  const auto half = times.begin() + static_cast<int64_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), half, times.end());
  return std::max(1.0, *half);
}

}  // namespace mgc
