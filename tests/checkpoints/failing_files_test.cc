// A save that fails or is killed at any of its system calls leaves the checkpoint before it, or the
// new one, whole; never half of one, and never none.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/state/checkpoint.h"
#include "runtime/train/checkpoints.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace {

enum class Ending { kNone, kFail, kKill };

// What becomes of which call; of this process.
struct Trap {
  Ending ending = Ending::kNone;
  int at = 0;  // the call, from 0
  int calls = 0;
};
Trap trap;

// Counts a call; whether it is to fail.
bool Fails() {
  if (trap.ending == Ending::kNone || trap.calls++ != trap.at) return false;
  if (trap.ending == Ending::kKill) raise(SIGKILL);
  errno = ENOSPC;
  return true;
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Take the place of the C library's.
extern "C" {
ssize_t write(int file, const void* bytes, size_t count) {
  return Fails() ? -1 : Next<ssize_t(int, const void*, size_t)>("write")(file, bytes, count);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  return Fails()
             ? -1
             : Next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(file, bytes, count, offset);
}
int ftruncate(int file, off_t bytes) {
  return Fails() ? -1 : Next<int(int, off_t)>("ftruncate")(file, bytes);
}
int fsync(int file) { return Fails() ? -1 : Next<int(int)>("fsync")(file); }
int rename(const char* from, const char* to) {
  return Fails() ? -1 : Next<int(const char*, const char*)>("rename")(from, to);
}
int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  return Fails() ? -1
                 : Next<int(int, const char*, int, const char*, unsigned)>("renameat2")(
                       from_dir, from, to_dir, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  return Fails() ? -1 : Next<int(const char*, mode_t)>("mkdir")(path, mode);
}
int unlinkat(int dir, const char* path, int flags) {
  return Fails() ? -1 : Next<int(int, const char*, int)>("unlinkat")(dir, path, flags);
}
}

namespace mgc {
namespace {

class FailingFilesTest : public FolderTest {
 protected:
  static TrainCase OneLayer() {
    TrainCase c = GptCase(1, 1, 1);
    c.layers = 1;
    return c;
  }

  FailingFilesTest() : case_(OneLayer()), plan_(*CompileCase(case_)) {}

  // A trainer that stands where the folder's last checkpoint does, or at the begin.
  std::unique_ptr<Trainer> GoOn() const {
    auto trainer = Trainer::Create(plan_, OptionsFor(plan_, case_, 9, /*workers=*/1, kernels_));
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    Checkpoints checkpoints(options_, **trainer, [](const std::string&) {});
    const absl::Status opened = checkpoints.Open();
    EXPECT_TRUE(opened.ok()) << opened;
    return *std::move(trainer);
  }

  // In a process of its own: goes on from what there is, takes a step and saves it while the next
  // one computes, in which the call `at` ends as told. Whether it has come to that call; `saved`:
  // whether all went well.
  bool SaveWith(Ending ending, int at, bool* saved) const {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) _exit(SaveInChild(ending, at));
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      EXPECT_EQ(WTERMSIG(status), SIGKILL);
      *saved = false;
      return true;
    }
    EXPECT_LT(WEXITSTATUS(status), 4);
    *saved = (WEXITSTATUS(status) & 1) != 0;
    return (WEXITSTATUS(status) & 2) != 0;
  }

  // Bit 0: saved; bit 1: came to the call. 4: something else went wrong.
  int SaveInChild(Ending ending, int at) const {
    auto trainer = Trainer::Create(plan_, OptionsFor(plan_, case_, 9, /*workers=*/1, kernels_));
    Checkpoints checkpoints(options_, **trainer, [](const std::string&) {});
    if (!checkpoints.Open().ok() || !(*trainer)->Step().ok()) return 4;
    trap = {ending, at, 0};
    absl::Status status = checkpoints.Save(/*in_background=*/true);
    if (!(*trainer)->Step().ok()) return 4;  // in which it is written
    if (status.ok()) status = checkpoints.Settle();
    trap.ending = Ending::kNone;
    if (!status.ok() && !absl::IsResourceExhausted(status)) return 4;
    return (status.ok() ? 1 : 0) | (trap.calls > at ? 2 : 0);
  }

  // Each call, or each `stride`-th.
  void TryCalls(Ending ending, int stride = 1) const {
    int whole = 0;
    int64_t was = GoOn()->steps_done();
    for (int at = 0;; at += stride) {
      SCOPED_TRACE(absl::StrCat("call ", at));
      bool saved = false;
      const bool reached = SaveWith(ending, at, &saved);
      ASSERT_FALSE(HasFailure());
      const int64_t is = GoOn()->steps_done();  // reads and checks all of it
      EXPECT_TRUE(is == was || is == was + 1) << was << " then " << is;
      EXPECT_TRUE(!saved || is == was + 1) << was << " then " << is;
      whole += is > was ? 1 : 0;
      was = is;
      if (!reached) break;
      ASSERT_LT(at, 500);
      EXPECT_EQ(CountTemporaries(), 0);  // GoOn has cleaned up
    }
    EXPECT_GT(whole, 0);
  }

  int CountTemporaries() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options_.save_dir)) {
      count += entry.path().string().find(".tmp-") != std::string::npos ? 1 : 0;
    }
    return count;
  }

  const TrainCase case_;
  const Plan plan_;
  const std::vector<KernelEntry> kernels_ = CpuKernels();
  CheckpointOptions options_ = [this] {
    CheckpointOptions options;
    options.save_dir = Path("run");
    options.keep = 2;
    return options;
  }();
};

TEST_F(FailingFilesTest, EveryCallFails) {
  bool saved = false;
  SaveWith(Ending::kNone, 0, &saved);
  ASSERT_TRUE(saved);
  TryCalls(Ending::kFail);
}

TEST_F(FailingFilesTest, KilledAtEveryCall) {
  bool saved = false;
  SaveWith(Ending::kNone, 0, &saved);
  ASSERT_TRUE(saved);
  TryCalls(Ending::kKill);
}

// The step goes on, and ends or not, while its copy is written.
TEST_F(FailingFilesTest, KilledAtCallsForACopy) {
  options_.copies = true;
  bool saved = false;
  SaveWith(Ending::kNone, 0, &saved);
  ASSERT_TRUE(saved);
  TryCalls(Ending::kKill, 3);
}

}  // namespace
}  // namespace mgc
