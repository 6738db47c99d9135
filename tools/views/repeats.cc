#include "tools/views/repeats.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr size_t kMaxPeriod = 64;

// Whether `later` is `earlier` with its micro-batch moved by `shift`.
bool Repeats(const ScheduleEntry& earlier, const ScheduleEntry& later, int64_t shift) {
  if (earlier.word != later.word) return false;
  if (earlier.micro_batch < 0) return later.micro_batch < 0;
  return later.micro_batch == earlier.micro_batch + shift;
}

// How often entries [at, at + period) stand one behind the other, and their shift.
int64_t TimesAt(const std::vector<ScheduleEntry>& entries, size_t at, size_t period,
                int64_t* shift) {
  if (at + 2 * period > entries.size()) return 1;
  *shift = 0;
  for (size_t i = at; i < at + period; ++i) {
    if (entries[i].micro_batch < 0) continue;
    *shift = entries[i + period].micro_batch - entries[i].micro_batch;
    break;
  }
  size_t end = at + period;
  while (end < entries.size() && Repeats(entries[end - period], entries[end], *shift)) ++end;
  return static_cast<int64_t>((end - at) / period);
}

Loop BestLoopAt(const std::vector<ScheduleEntry>& entries, size_t at) {
  Loop best{{entries[at]}, 1, 0};
  size_t best_saved = 1;  // a pair alone reads better as it is
  for (size_t period = 1; period <= kMaxPeriod; ++period) {
    int64_t shift = 0;
    const int64_t times = TimesAt(entries, at, period, &shift);
    const size_t saved = static_cast<size_t>(times - 1) * period;
    if (saved <= best_saved) continue;
    best_saved = saved;
    const auto first = entries.begin() + static_cast<std::ptrdiff_t>(at);
    best = {{first, first + static_cast<std::ptrdiff_t>(period)}, times, shift};
  }
  return best;
}

}  // namespace

std::string ToString(const ScheduleEntry& entry) {
  return entry.micro_batch < 0 ? entry.word : absl::StrCat(entry.word, entry.micro_batch);
}

std::vector<Loop> FindLoops(const std::vector<ScheduleEntry>& entries) {
  std::vector<Loop> loops;
  for (size_t at = 0; at < entries.size();) {
    Loop loop = BestLoopAt(entries, at);
    at += loop.entries.size() * static_cast<size_t>(loop.times);
    if (loop.times == 1 && !loops.empty() && loops.back().times == 1) {
      loops.back().entries.push_back(loop.entries[0]);
    } else {
      loops.push_back(std::move(loop));
    }
  }
  return loops;
}

std::string ToString(const std::vector<Loop>& loops) {
  std::string text;
  for (const Loop& loop : loops) {
    absl::StrAppend(&text, text.empty() ? "" : " ");
    if (loop.times > 1) absl::StrAppend(&text, loop.times, " x (");
    for (size_t i = 0; i < loop.entries.size(); ++i) {
      absl::StrAppend(&text, i > 0 ? " " : "", ToString(loop.entries[i]));
    }
    if (loop.times > 1) absl::StrAppend(&text, ")", loop.shift != 0 ? " +" : "");
    if (loop.times > 1 && loop.shift != 0) absl::StrAppend(&text, loop.shift);
  }
  return text;
}

}  // namespace mgc
