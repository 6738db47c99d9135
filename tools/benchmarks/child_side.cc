#include "tools/benchmarks/child_side.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Starts the program with `socket` as its standard input and output; 0, or the system's error.
int Spawn(const std::vector<std::string>& command, int socket, pid_t* pid) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  const int error = posix_spawnp(pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchSide>> ChildSide::Create(
    const std::vector<std::string>& command) {
  int sockets[2] = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return absl::UnavailableError(absl::StrCat("socketpair: ", std::strerror(errno)));
  }
  pid_t pid = 0;
  const int error = Spawn(command, sockets[1], &pid);
  close(sockets[1]);
  if (error != 0) {
    close(sockets[0]);
    return absl::UnavailableError(absl::StrCat(command[0], ": ", std::strerror(error)));
  }
  return Adopt(command[0], sockets[0], pid);
}

absl::StatusOr<std::unique_ptr<ChildSide>> ChildSide::Adopt(const std::string& name, int socket,
                                                            pid_t pid) {
  std::unique_ptr<ChildSide> side(new ChildSide(name, socket, pid));
  MGC_ASSIGN_OR_RETURN(const std::string line, side->ReadLine());
  if (line != "ready") {
    return absl::UnavailableError(
        absl::StrCat(name, " said '", EscapeBytes(line), "' instead of 'ready'"));
  }
  return side;
}

ChildSide::~ChildSide() {
  close(socket_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

absl::StatusOr<std::string> ChildSide::ReadLine() {
  for (;;) {
    const size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    char bytes[256];
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return absl::UnavailableError(absl::StrCat(name_, " has ended"));
    unread_.append(bytes, static_cast<size_t>(count));
  }
}

absl::StatusOr<StepTime> ChildSide::Step() {
  MGC_RETURN_IF_ERROR(Ask());
  return Answer();
}

absl::Status ChildSide::Ask() {
  constexpr char kStep[] = "step\n";
  if (send(socket_, kStep, sizeof kStep - 1, MSG_NOSIGNAL) < 0) {
    return absl::UnavailableError(absl::StrCat(name_, " has ended"));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepTime> ChildSide::Answer() {
  MGC_ASSIGN_OR_RETURN(const std::string line, ReadLine());
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  StepTime time;
  if (words.size() != 3 || !absl::SimpleAtod(words[0], &time.seconds) || !(time.seconds > 0) ||
      !absl::SimpleAtod(words[1], &time.cpu_seconds) ||
      !absl::SimpleAtoi(words[2], &profile_.peak_bytes)) {
    return absl::UnavailableError(
        absl::StrCat(name_, " said '", EscapeBytes(line), "' instead of times and memory"));
  }
  return time;
}

}  // namespace mgc
