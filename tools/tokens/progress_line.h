// A line on the terminal that says how far it has come.

#ifndef MGC_TOOLS_TOKENS_PROGRESS_LINE_H_
#define MGC_TOOLS_TOKENS_PROGRESS_LINE_H_

#include <chrono>

#include "tools/tokens/tokenize_files.h"

namespace mgc {

// Where stderr is no terminal it shows nothing.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // leaves an empty line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows it, a few times a second at most.
  void Show(const TokenizeProgress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  const bool visible_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = begin_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_TOKENS_PROGRESS_LINE_H_
