#include "runtime/comm/testing/forked_world.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <new>
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int kMostProcesses = 16;
constexpr size_t kMostText = 1000;
constexpr std::chrono::milliseconds kNap(1);

// An error or a string, as one process writes it for the others.
struct Text {
  void Set(const std::string& text) {
    size = std::min(text.size(), kMostText);
    std::memcpy(bytes, text.data(), size);
  }
  std::string Get() const { return {bytes, size}; }

  size_t size = 0;
  char bytes[kMostText] = {};
};

}  // namespace

struct ForkedWorld::Common {
  std::atomic<int> ended_by{-1};  // absl::StatusCode of the error that ends the run; -1: none
  std::atomic<bool> claimed{false};
  Text error;
  std::atomic<int> arrived{0};  // at exchanges, in all
  std::atomic<int> left{0};
  Text given[kMostProcesses];
  Text messages[kMostProcesses];  // of the bodies' errors
};

ForkedWorld::ForkedWorld(int processes) : processes_(processes) {
  MGC_CHECK(processes <= kMostProcesses) << processes << " processes";
  void* const at =
      mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MGC_CHECK(at != MAP_FAILED) << "no shared memory";
  common_ = new (at) Common;
}

ForkedWorld::~ForkedWorld() { munmap(common_, sizeof(Common)); }

std::vector<absl::Status> ForkedWorld::Run(const std::function<absl::Status(int self)>& body,
                                           std::chrono::seconds deadline) {
  std::vector<pid_t> pids;
  for (int p = 0; p < processes_; ++p) {
    const pid_t pid = fork();
    MGC_CHECK(pid >= 0) << "fork";
    if (pid == 0) {
      const absl::Status status = body(p);
      if (!status.ok()) Abort(status);
      common_->messages[p].Set(std::string(status.message()));
      _exit(static_cast<int>(status.code()));
    }
    pids.push_back(pid);
  }
  const auto end = std::chrono::steady_clock::now() + deadline;
  std::vector<absl::Status> statuses;
  for (int p = 0; p < processes_; ++p) {
    const pid_t pid = pids[static_cast<size_t>(p)];
    int ended = 0;
    bool killed = false;
    while (waitpid(pid, &ended, WNOHANG) == 0) {
      if (!killed && std::chrono::steady_clock::now() > end) {
        kill(pid, SIGKILL);
        killed = true;
      }
      std::this_thread::sleep_for(kNap);
    }
    if (killed) {
      statuses.push_back(absl::DeadlineExceededError(absl::StrCat("process ", p, " hangs")));
    } else if (!WIFEXITED(ended)) {
      statuses.push_back(absl::AbortedError(absl::StrCat("process ", p, " died: ", ended)));
    } else {
      statuses.emplace_back(static_cast<absl::StatusCode>(WEXITSTATUS(ended)),
                            common_->messages[p].Get());
    }
  }
  return statuses;
}

absl::StatusOr<std::vector<std::string>> ForkedWorld::Exchange(int self, const std::string& mine) {
  MGC_CHECK(mine.size() <= kMostText) << mine.size() << " bytes";
  const auto wait_for = [this](const std::atomic<int>& counter, int count) {
    while (counter.load() < count) {
      MGC_RETURN_IF_ERROR(status());
      std::this_thread::sleep_for(kNap);
    }
    return absl::OkStatus();
  };
  // Nobody leaves before all have read, so that the next exchange finds the counters in step.
  common_->given[self].Set(mine);
  const int round = common_->arrived.fetch_add(1) / processes_ + 1;
  MGC_RETURN_IF_ERROR(wait_for(common_->arrived, round * processes_));
  std::vector<std::string> all;
  for (int p = 0; p < processes_; ++p) all.push_back(common_->given[p].Get());
  common_->left.fetch_add(1);
  MGC_RETURN_IF_ERROR(wait_for(common_->left, round * processes_));
  return all;
}

void ForkedWorld::Abort(const absl::Status& status) {
  if (common_->claimed.exchange(true)) return;
  common_->error.Set(std::string(status.message()));
  common_->ended_by.store(static_cast<int>(status.code()));
}

absl::Status ForkedWorld::status() const {
  const int code = common_->ended_by.load();
  if (code < 0) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(code), common_->error.Get()};
}

}  // namespace mgc
