#include "runtime/watch/watchdog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mgc {
namespace {

// A rank that computes so many times as long as usual is slow, if that is not a moment.
constexpr double kSlow = 4;
constexpr int64_t kLeastSlowNs = 50'000'000;

}  // namespace

absl::optional<std::string> Watchdog::Look(int64_t now_ns) const {
  const Culprit culprit = waits_.FindCulprit(now_ns, floor_ns_);
  if (culprit.rank < 0) return absl::nullopt;
  return absl::StrCat(waits_.Sentence(culprit), "\n", waits_.Table(now_ns));
}

absl::optional<std::string> Watchdog::FindSlow() {
  usual_.resize(board_.ranks().size());
  for (size_t r = 0; r < usual_.size(); ++r) {
    const RankProgress& rank = board_.ranks()[r];
    Usual& usual = usual_[r];
    const int64_t busy = rank.busy_ns.get();
    if (busy == 0 || usual.told || rank.eval.get()) continue;
    const bool is_first = usual.busy_ns == 0;
    if (!is_first && static_cast<double>(busy) > kSlow * static_cast<double>(usual.busy_ns) &&
        busy - usual.busy_ns > kLeastSlowNs) {
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

}  // namespace mgc
