#include "tools/cli/svg.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int kNoProgram = 127;  // exit code of a child that could not become `dot`

// A file in memory, gone with this object: nothing is left however the program ends.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : file_(memfd_create(name, MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (file_ >= 0) close(file_);
  }
  int number() const { return file_; }
  // By this name it can be opened from its beginning.
  std::string path() const { return absl::StrCat("/proc/self/fd/", file_); }

 private:
  int file_;
};

// Writes all of `bytes` and goes back to the beginning.
bool Fill(const MemoryFile& file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return lseek(file.number(), 0, SEEK_SET) == 0;
}

// Starts `dot -Tsvg` from `input` to `output`, silent.
pid_t Start(const MemoryFile& input, const MemoryFile& output) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int null = open("/dev/null", O_RDWR);
  dup2(input.number(), STDIN_FILENO);
  dup2(output.number(), STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  execlp("dot", "dot", "-Tsvg", static_cast<char*>(nullptr));
  _exit(kNoProgram);
}

// The child's wait status; it is killed and DeadlineExceeded returned at the deadline.
absl::StatusOr<int> WaitFor(pid_t child, int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return absl::DeadlineExceededError(
          absl::StrCat("dot took more than ", seconds, " s and was stopped"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

}  // namespace

absl::StatusOr<std::string> RenderSvg(absl::string_view dot, int seconds) {
  const MemoryFile input("mgc.dot");
  const MemoryFile output("mgc.svg");
  if (input.number() < 0 || output.number() < 0) {
    return absl::InternalError("cannot make a file in memory for dot");
  }
  if (!Fill(input, dot)) return absl::InternalError("cannot write the drawing for dot");
  const pid_t child = Start(input, output);
  if (child < 0) return absl::InternalError("cannot start a process for dot");
  MGC_ASSIGN_OR_RETURN(const int status, WaitFor(child, seconds));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram) {
    return absl::NotFoundError("Graphviz's dot is not installed");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError("dot failed on the drawing");
  }
  return ReadFile(output.path());
}

absl::Status AddSvg(absl::string_view dot, const std::string& path,
                    std::vector<OutputFile>* files) {
  absl::StatusOr<std::string> svg = RenderSvg(dot);
  if (!svg.ok()) return Annotate(svg.status(), absl::StrCat("no SVG ", EscapeBytes(path)));
  files->push_back({path, *std::move(svg)});
  return absl::OkStatus();
}

}  // namespace mgc
