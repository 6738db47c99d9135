#include "tools/svg.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int kNoProgram = 127;  // exit code of a child that could not become `dot`

// A folder for the two files, gone with this object.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Create() {
    const char* base = getenv("TMPDIR");
    std::string path = absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/mgcXXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return absl::InternalError(absl::StrCat("cannot make a folder ", EscapeBytes(path)));
    }
    return Scratch(std::move(path));
  }
  Scratch(Scratch&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (path_.empty()) return;
    unlink(input().c_str());
    unlink(output().c_str());
    rmdir(path_.c_str());
  }
  std::string input() const { return path_ + "/plan.dot"; }
  std::string output() const { return path_ + "/plan.svg"; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Starts `dot -Tsvg -o output input`, silent.
pid_t Start(const Scratch& scratch) {
  const std::string input = scratch.input();
  const std::string output = scratch.output();
  const pid_t child = fork();
  if (child != 0) return child;
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  execlp("dot", "dot", "-Tsvg", "-o", output.c_str(), input.c_str(), static_cast<char*>(nullptr));
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
  MGC_ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Create());
  MGC_RETURN_IF_ERROR(WriteFileAtomically(scratch.input(), dot));
  const pid_t child = Start(scratch);
  if (child < 0) return absl::InternalError("cannot start a process for dot");
  MGC_ASSIGN_OR_RETURN(const int status, WaitFor(child, seconds));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram) {
    return absl::NotFoundError("Graphviz's dot is not installed");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError("dot failed on the drawing");
  }
  return ReadFile(scratch.output());
}

void AddSvg(absl::string_view dot, const std::string& path, std::vector<OutputFile>* files) {
  absl::StatusOr<std::string> svg = RenderSvg(dot);
  if (svg.ok()) {
    files->push_back({path, *std::move(svg)});
  } else {
    std::cerr << "note: no SVG: " << svg.status().message() << "\n";
  }
}

}  // namespace mgc
