// What a process with one rank reads of a checkpoint: the bytes of its rank, and little beside
// them, by the system calls that it makes.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/run/testing/heap_processes.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/parameters.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/sized_test.h"

namespace {

// What the threads of this process read.
struct Count {
  std::mutex mutex;
  std::map<std::thread::id, int64_t> bytes;
};
Count count;

int64_t BytesRead() {
  const std::lock_guard<std::mutex> lock(count.mutex);
  return count.bytes[std::this_thread::get_id()];
}

}  // namespace

// Takes the place of the C library's.
extern "C" ssize_t pread(int file, void* bytes, size_t wanted, off_t offset) {
  const auto next =
      reinterpret_cast<ssize_t (*)(int, void*, size_t, off_t)>(dlsym(RTLD_NEXT, "pread"));
  const ssize_t got = next(file, bytes, wanted, offset);
  const std::lock_guard<std::mutex> lock(count.mutex);
  if (got > 0) count.bytes[std::this_thread::get_id()] += got;
  return got;
}

namespace mgc {
namespace {

constexpr int kRanks = 16;

// tp 2, pp 2 and dp 4 with ZeRO 1: vectors are whole in all ranks, matrices in halves, moments in
// eighths of those.
TrainCase OnSixteen(const std::string& preset, int64_t vocab) {
  TrainCase c = WithZero(GptCase(2, 2, 4), 1);
  c.preset = preset;
  c.vocab = vocab;
  return c;
}

class ReadingTest : public FolderTest {
 public:
  explicit ReadingTest(TrainCase c) : case_(std::move(c)) {}

  void TestBody() override {
    const auto plan = CompileCase(case_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    InHeapProcesses(kRanks, kRanks, false, [&](const ProcessPlace& place) {
      ExecutorOptions options;
      options.kernels = kernels_;
      options.workers = 1;
      options.process = place;
      const auto executor = Executor::Create(*plan, options);
      ASSERT_TRUE(executor.ok()) << executor.status();
      InitializeParameters(7, **executor);
      SaveAndLoad(**executor);
    });
  }

 private:
  void SaveAndLoad(Executor& executor) const {
    std::unique_ptr<CheckpointDir> dir;
    if (executor.team().is_lead()) dir = *CheckpointDir::Open(Path("run"));
    TrainingState state;
    state.step = 1;
    auto pending = PendingCheckpoint::Begin(executor, dir.get(), state);
    ASSERT_TRUE(pending.ok()) << pending.status();
    (*pending)->Write([] {});
    const absl::StatusOr<std::string> folder = (*pending)->End();
    ASSERT_TRUE(folder.ok()) << folder.status();
    const int64_t before = BytesRead();
    const auto loaded = LoadCheckpoint(*folder, executor);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    int64_t read = BytesRead() - before;
    // It alone reads it, for all.
    if (executor.team().is_lead()) {
      read += static_cast<int64_t>(std::filesystem::file_size(*folder + "/manifest.json"));
    }
    const int64_t held = HeldBytes(executor.plan(), executor.local().begin);
    EXPECT_GE(read, loaded->bytes);
    EXPECT_GE(loaded->bytes, held * 0.9) << "but for padding, which no file has";
    EXPECT_LE(read, held * 1.1) << "rank " << executor.local().begin;
  }

  // Of parameters and moments in the arena of a rank.
  static int64_t HeldBytes(const Plan& plan, int64_t rank) {
    int64_t bytes = 0;
    for (const TensorRole role :
         {TensorRole::kParam, TensorRole::kFirstMoment, TensorRole::kSecondMoment}) {
      const auto tensors = HeldTensors(plan, role, Holders::kAll);
      EXPECT_TRUE(tensors.ok()) << tensors.status();
      for (const HeldTensor& tensor : *tensors) {
        if (tensor.rank_class != ClassOfRank(plan.mesh, rank)) continue;
        bytes += LocalElements(*tensor.type, *tensor.sharding, plan.mesh) *
                 static_cast<int64_t>(sizeof(float));
      }
    }
    return bytes;
  }

  const TrainCase case_;
  const std::vector<KernelEntry> kernels_ = CpuKernels();
};

// `few`: a small one; many: GPT-2 of 124M parameters as well, which takes some 8 GB of memory and 2
// of disk.
void RegisterCases(int cases) {
  std::vector<TrainCase> all = {OnSixteen("gpt2-tiny", 8192)};
  if (cases > 1) all.push_back(OnSixteen("gpt2-124m", 50257));
  for (const TrainCase& c : all) {
    RegisterSized<ReadingTest>("Reading", NameOf(c), [c] { return new ReadingTest(c); });
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterCases); }
