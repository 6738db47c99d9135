#include "runtime/state/tensor_file.h"

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "runtime/comm/team_file.h"
#include "runtime/data/safetensors.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/device_deferred.h"
#include "runtime/run/testing/heap_processes.h"
#include "runtime/run/testing/reference_kernels.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 8;

class TensorFileTest : public FolderTest {
 protected:
  TensorFileTest() : kernels_(ReferenceKernels()) {
    ChainOptions options;
    options.tp = options.dp = options.pp = 2;
    plan_ = ChainPlan(options);
    data_ = *TokenDataset::FromBytes(std::string(1000, 'a'), options.seq, "data");
  }

  // An executor after a step.
  std::unique_ptr<Executor> Trained(ExecutorOptions options) const {
    options.kernels = kernels_;
    options.workers = 1;
    auto made = Executor::Create(plan_, options);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return nullptr;
    InitializeParameters(7, **made);
    const NamedScalar scalars[] = {{"lr", 0.01}};
    StepInput input;
    input.data = {&data_, 0, int64_t{1} << 40};
    input.scalars = scalars;
    const absl::Status status = (*made)->Run(input);
    EXPECT_TRUE(status.ok()) << status;
    return *std::move(made);
  }

  // What `act` returns in each of the processes, which have done a step together.
  std::vector<absl::Status> InProcesses(int processes,
                                        const std::function<absl::Status(Executor&)>& act,
                                        const DeviceFactory& device = nullptr) const {
    std::vector<absl::Status> results(static_cast<size_t>(processes));
    InHeapProcesses(kRanks, processes, false, [&](const ProcessPlace& place) {
      ExecutorOptions options;
      options.process = place;
      options.device = device;
      const auto executor = Trained(options);
      ASSERT_NE(executor, nullptr);
      results[static_cast<size_t>(place.self)] = act(*executor);
    });
    return results;
  }

  // The bytes that a file of all tensors has.
  std::string Expected(TensorRole role) const {
    const auto executor = Trained({});
    const auto tensors = GatherTensors(*executor, role);
    EXPECT_TRUE(tensors.ok()) << tensors.status();
    std::vector<SafetensorsView> views;
    for (const LogicalTensor& tensor : *tensors) {
      views.push_back(ViewOf(tensor.name, tensor.shape, tensor.values));
    }
    EXPECT_TRUE(WriteSafetensors(Path("expected"), std::move(views)).ok());
    std::string bytes = ReadFile(Path("expected")).value();
    std::filesystem::remove(Path("expected"));
    return bytes;
  }

  std::vector<KernelEntry> kernels_;
  Plan plan_;
  TokenDataset data_ = *TokenDataset::FromBytes("abcdefghij", 2, "none");
};

TEST_F(TensorFileTest, AnyNumberOfProcessesWritesTheSameBytes) {
  for (const TensorRole role : {TensorRole::kParam, TensorRole::kMeanGradient}) {
    const std::string expected = Expected(role);
    for (const int processes : {1, 2, 3, 8}) {
      const std::string path = Path(absl::StrCat("of", processes));
      const auto write = [&](Executor& executor) { return WriteTensors(executor, role, path); };
      for (const absl::Status& status : InProcesses(processes, write)) {
        EXPECT_TRUE(status.ok()) << status;
      }
      EXPECT_TRUE(ReadFile(path).value() == expected) << processes << " processes";
    }
    const auto alone = Trained({});
    EXPECT_TRUE(WriteTensors(*alone, role, Path("alone")).ok());
    EXPECT_TRUE(ReadFile(Path("alone")).value() == expected);
  }
  EXPECT_EQ(CountFiles(), 5);
}

// Each reads what its ranks hold, and not a byte more; a rank alone its tile.
TEST_F(TensorFileTest, ProcessesReadWhatTheyHold) {
  std::vector<StoredTensor> stored;
  const auto alone = Trained({});
  auto store = TensorStore::Begin(*alone, TensorRole::kParam, Path("a"));
  ASSERT_TRUE(store.ok()) << store.status();
  stored = (*store)->End((*store)->Write([] {})).value();
  int64_t whole = 0;
  for (const StoredTensor& tensor : stored) whole += NumElements(tensor.shape) * 4;
  for (const int processes : {1, 2, 4, 8}) {
    const auto read = [&](Executor& executor) -> absl::Status {
      const absl::StatusOr<int64_t> bytes =
          RestoreTensors(TensorRole::kParam, Path("a"), stored, executor);
      if (!bytes.ok()) return bytes.status();
      // Parameters of a chain are halved by pp, not by tp and dp.
      EXPECT_EQ(*bytes, processes == 1 ? whole : whole / 2);
      return WriteTensors(executor, TensorRole::kParam, Path("again"));
    };
    for (const absl::Status& status : InProcesses(processes, read)) {
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE(ReadFile(Path("again")).value() == ReadFile(Path("a")).value()) << processes;
  }
}

TEST_F(TensorFileTest, WhatADeviceDoesLaterIsInTheFile) {
  for (const TensorRole role : {TensorRole::kParam, TensorRole::kMeanGradient}) {
    const auto write = [&](Executor& executor) {
      InitializeParameters(8, executor);  // is issued, and nobody waits until it is done
      return WriteTensors(executor, role, Path("a"));
    };
    EXPECT_TRUE(InProcesses(1, write)[0].ok());
    const std::string at_once = ReadFile(Path("a")).value();
    for (const int processes : {1, 3}) {
      for (const absl::Status& status : InProcesses(processes, write, DeferredDevices({}))) {
        EXPECT_TRUE(status.ok()) << status;
      }
      EXPECT_TRUE(ReadFile(Path("a")).value() == at_once) << processes << " processes";
    }
  }
}

TEST_F(TensorFileTest, WhatCannotBeCreatedFailsEverywhere) {
  const auto write = [&](Executor& executor) {
    return WriteTensors(executor, TensorRole::kParam, Path("gone/a"));
  };
  const std::vector<absl::Status> results = InProcesses(3, write);
  for (const absl::Status& status : results) EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(results[2].message()), HasSubstr("process 0: cannot write "));
  EXPECT_EQ(CountFiles(), 0);
}

TEST_F(TensorFileTest, DevicesTakeTheTensorsOfOneProcess) {
  const auto write = [&](Executor& executor) {
    return WriteTensors(executor, TensorRole::kParam, "/dev/full");
  };
  for (const absl::Status& status : InProcesses(2, write)) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full from 2 processes"));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(write(*Trained({}))));
}

absl::Status WriteTogether(Team& team, const std::string& path, int64_t bytes,
                           absl::FunctionRef<absl::Status(SharedFile&)> write) {
  absl::StatusOr<TeamFile> file = TeamFile::Begin(team, path, bytes);
  if (!file.ok()) return file.status();
  return file->End(team, write(file->file()));
}

TEST_F(TensorFileTest, OneProcessThatFailsLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  const auto write = [&](Executor& executor) {
    Team& team = executor.team();
    return WriteTogether(team, Path("a"), 3, [&](SharedFile& file) {
      if (team.self() == 1) return absl::DataLossError("no more");
      return file.Write(team.self(), "x");
    });
  };
  const std::vector<absl::Status> results = InProcesses(3, write);
  for (const absl::Status& status : results) EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(results[0].message(), "process 1: no more");
  EXPECT_EQ(results[2].message(), "process 1: no more");
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  EXPECT_EQ(CountFiles(), 1);
}

// The name is taken while the tensors are being written.
TEST_F(TensorFileTest, WhatCannotBeRenamedFailsEverywhere) {
  const auto write = [&](Executor& executor) {
    Team& team = executor.team();
    return WriteTogether(team, Path("a"), 2, [&](SharedFile& file) {
      if (team.self() == 1) std::filesystem::create_directory(Path("a"));
      return file.Write(team.self(), "x");
    });
  };
  for (const absl::Status& status : InProcesses(2, write)) EXPECT_FALSE(status.ok());
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(TensorFileTest, TensorsOfSeveralProcessesAreNotGathered) {
  const auto gather = [](Executor& executor) {
    return GatherTensors(executor, TensorRole::kParam).status();
  };
  for (const absl::Status& status : InProcesses(2, gather)) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
}

}  // namespace
}  // namespace mgc
