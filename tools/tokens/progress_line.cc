#include "tools/tokens/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/units.h"

namespace mgc {
namespace {

constexpr char kClear[] = "\r\033[K";
constexpr std::chrono::milliseconds kPause(200);

}  // namespace

ProgressLine::ProgressLine() : visible_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (visible_) std::fputs(kClear, stderr);
}

void ProgressLine::Show(const TokenizeProgress& progress) {
  const Clock::time_point now = Clock::now();
  if (!visible_ || now - shown_ < kPause) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  std::string line =
      absl::StrCat(kClear, BytesText(progress.bytes), " of ", progress.documents, " documents");
  if (progress.tokens > 0) absl::StrAppend(&line, ", ", progress.tokens, " tokens");
  absl::StrAppend(&line, ", ",
                  BytesText(static_cast<int64_t>(static_cast<double>(progress.bytes) / seconds)),
                  "/s");
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace mgc
