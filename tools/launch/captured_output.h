// What this process prints, kept instead of shown: of several that would print the same.

#ifndef MGC_TOOLS_LAUNCH_CAPTURED_OUTPUT_H_
#define MGC_TOOLS_LAUNCH_CAPTURED_OUTPUT_H_

#include <string>

namespace mgc {

// From its construction to End, stdout and stderr go to memory. Where the system gives none, they
// are shown.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput() { End(); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  // What has been printed, up to 4,000 bytes of it. Ends the capture.
  std::string End();

 private:
  int memory_ = -1;
  int shown_out_ = -1;
  int shown_err_ = -1;
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_CAPTURED_OUTPUT_H_
