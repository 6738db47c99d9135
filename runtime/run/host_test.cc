// Limits as the system writes them, in folders made here.
#include "runtime/run/host.h"

#include <sched.h>
#include <sys/stat.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr char kMachine[] = "MemTotal:  8388608 kB\nMemFree:  1024 kB\nMemAvailable:  4194304 kB\n";

// A fake system of its own for each test.
class FakeHost : public testing::Test {
 protected:
  FakeHost() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = absl::StrCat(testing::TempDir(), "/", test->name());
    paths_.proc = root_ + "/proc";
    paths_.cgroup = root_ + "/cgroup";
    Write("proc/meminfo", kMachine);
  }

  // Makes the folders on the way.
  void Write(const std::string& path, const std::string& content) const {
    mkdir(root_.c_str(), 0755);
    for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      mkdir(absl::StrCat(root_, "/", path.substr(0, at)).c_str(), 0755);
    }
    std::ofstream(absl::StrCat(root_, "/", path)) << content;
  }

  std::string root_;
  HostPaths paths_;
};

TEST_F(FakeHost, WithoutGroupsTheMachineIsTheLimit) {
  const Host host = ReadHost(paths_);
  EXPECT_GE(host.processors, 1);
  EXPECT_EQ(host.memory_bytes, 8192 * kMiB);
  EXPECT_EQ(host.limit_bytes, Host::kUnlimited);
  EXPECT_EQ(host.free_bytes, 4096 * kMiB);
}

TEST_F(FakeHost, Version2LimitsFromTheOwnGroupToTheRoot) {
  Write("proc/self/cgroup", "0::/batch/job\n");
  Write("cgroup/batch/job/cpu.max", "max 100000\n");
  Write("cgroup/batch/cpu.max", "50000 100000\n");
  Write("cgroup/batch/job/memory.max", "max\n");
  Write("cgroup/batch/memory.max", absl::StrCat(1024 * kMiB, "\n"));
  Write("cgroup/batch/memory.current", absl::StrCat(600 * kMiB, "\n"));
  Write("cgroup/batch/memory.stat", absl::StrCat("anon 1\ninactive_file ", 100 * kMiB, "\n"));
  const Host host = ReadHost(paths_);
  EXPECT_EQ(host.processors, 1);
  EXPECT_EQ(host.limit_bytes, 1024 * kMiB);
  EXPECT_EQ(host.free_bytes, (1024 - 600 + 100) * kMiB);
}

TEST_F(FakeHost, Version1LimitsByController) {
  Write("proc/self/cgroup", "3:memory:/job\n2:cpu,cpuacct:/job\n1:name=systemd:/else\n");
  Write("cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000\n");
  Write("cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", absl::StrCat(512 * kMiB, "\n"));
  Write("cgroup/memory/job/memory.usage_in_bytes", absl::StrCat(200 * kMiB, "\n"));
  Write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  const Host host = ReadHost(paths_);
  EXPECT_EQ(host.processors, 1);
  EXPECT_EQ(host.limit_bytes, 512 * kMiB);
  EXPECT_EQ(host.free_bytes, 312 * kMiB);
}

// A container sees its group's files at the root, and a path that does not exist inside.
TEST_F(FakeHost, AContainersLimitsStandAtTheRoot) {
  Write("proc/self/cgroup", "0::/docker/0123\n");
  Write("cgroup/cpu.max", "1 100000\n");
  Write("cgroup/memory.max", absl::StrCat(64 * kMiB, "\n"));
  const Host host = ReadHost(paths_);
  EXPECT_EQ(host.processors, 1);
  EXPECT_EQ(host.limit_bytes, 64 * kMiB);
  EXPECT_EQ(host.free_bytes, 64 * kMiB);
}

TEST_F(FakeHost, ShareOfAProcessorCountsAsAWholeOne) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int processors = CPU_COUNT(&before);
  Write("proc/self/cgroup", "0::/\n");
  for (const auto& [quota, want] : {std::pair<int, int>{1, 1}, {100000, 1}, {100001, 2}}) {
    Write("cgroup/cpu.max", absl::StrCat(quota, " 100000\n"));
    EXPECT_EQ(ReadHost(paths_).processors, std::min(want, processors)) << quota;
  }
}

TEST_F(FakeHost, DamagedFilesLimitNothing) {
  Write("proc/self/cgroup", "::\n0\n0::/job\n\n");
  const Host without = ReadHost(paths_);
  for (const char* text : {"", "\n", "max", "-5 100000\n", "0 0\n", "100000\n", "many 1\n",
                           "99999999999999999999 1\n"}) {
    Write("cgroup/job/cpu.max", text);
    Write("cgroup/job/memory.max", text[0] == '1' ? "x" : text);
    const Host host = ReadHost(paths_);
    EXPECT_EQ(host.processors, without.processors) << text;
    EXPECT_EQ(host.limit_bytes, text[0] == '0' ? 0 : Host::kUnlimited) << text;
  }
}

TEST(HostTest, ProcessorsFollowAffinity) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const int processors = ReadHost().processors;
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(processors, 1);
}

TEST(HostTest, ThisMachineHasMemory) {
  const Host host = ReadHost();
  EXPECT_GT(host.memory_bytes, 16 * kMiB);
  EXPECT_LT(host.memory_bytes, Host::kUnlimited);
  EXPECT_GT(host.free_bytes, 0);
  EXPECT_LE(host.free_bytes, host.memory_bytes);
}

TEST(CheckMemoryTest, SaysWhatIsNeededAndWhatThereIs) {
  Host host;
  host.memory_bytes = 1000 * kMiB;
  host.limit_bytes = 500 * kMiB;
  host.free_bytes = 100 * kMiB;
  EXPECT_TRUE(CheckMemory(100 * kMiB, host).ok());
  const std::pair<int64_t, const char*> cases[] = {
      {1001, "this machine has 1000.0 MiB"},
      {501, "this process's control group may use 500.0 MiB"},
      {101, "the ranks of this host need 101.0 MiB, of this machine's memory 100.0 MiB are free"}};
  for (const auto& [mib, text] : cases) {
    const absl::Status status = CheckMemory(mib * kMiB, host);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }
}

}  // namespace
}  // namespace mgc
