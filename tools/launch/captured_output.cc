#include "tools/launch/captured_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace mgc {

CapturedOutput::CapturedOutput() : memory_(memfd_create("output", MFD_CLOEXEC)) {
  if (memory_ < 0) return;
  std::fflush(nullptr);
  shown_out_ = dup(STDOUT_FILENO);
  shown_err_ = dup(STDERR_FILENO);
  dup2(memory_, STDOUT_FILENO);
  dup2(memory_, STDERR_FILENO);
}

std::string CapturedOutput::End() {
  if (memory_ < 0) return "";
  std::cout.flush();
  std::fflush(nullptr);
  dup2(shown_out_, STDOUT_FILENO);
  dup2(shown_err_, STDERR_FILENO);
  char text[4000];
  const ssize_t size = pread(memory_, text, sizeof(text), 0);
  for (int file : {memory_, shown_out_, shown_err_}) close(file);
  memory_ = -1;
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

}  // namespace mgc
