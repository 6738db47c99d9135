#include "runtime/watch/ages.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace mgc {

int64_t AgeAt(int64_t now_ns, int64_t time_ns) {
  return std::max<int64_t>(0, now_ns - std::max<int64_t>(0, time_ns));
}

std::string Seconds(int64_t ns) {
  const double seconds = static_cast<double>(ns) / 1e9;
  if (ns < 100'000'000) return absl::StrFormat("%.0f ms", seconds * 1e3);
  return absl::StrFormat("%.1f s", seconds);
}

}  // namespace mgc
