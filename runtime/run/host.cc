#include "runtime/run/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "graph/base/units.h"

namespace mgc {
namespace {

// The lines of a file of the system; none when it cannot be read.
std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The number after `key` and blanks in the file's first line that begins with `key`.
absl::optional<int64_t> NumberAfter(const std::string& path, absl::string_view key) {
  for (const std::string& line : LinesOf(path)) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, key)) continue;
    rest = absl::StripLeadingAsciiWhitespace(rest);
    int64_t number = 0;
    if (absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &number)) return number;
  }
  return absl::nullopt;
}

absl::optional<int64_t> NumberIn(const std::string& path) { return NumberAfter(path, ""); }

// Processors this thread may run on.
int AffineProcessors() {
  constexpr int kMostProcessors = 1 << 16;
  for (int most = CPU_SETSIZE; most <= kMostProcessors; most *= 2) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(most);
    const int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 1;
}

// The folders of the process's group for one controller, its own first, the root's last. In a
// container a group's path may be that of the outer machine; its own limits then stand at the root.
std::vector<std::string> GroupFolders(const HostPaths& paths, absl::string_view controller) {
  std::string root = paths.cgroup;
  absl::string_view own;
  const std::vector<std::string> lines = LinesOf(paths.proc + "/self/cgroup");
  for (const std::string& line : lines) {  // number:controllers:path
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    const bool names =
        std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
    if (!names && !(parts[1].empty() && own.empty())) continue;
    own = parts[2];
    if (names) root = absl::StrCat(paths.cgroup, "/", parts[1]);
    if (names) break;
  }
  std::vector<std::string> folders;
  for (own = absl::StripSuffix(own, "/"); !own.empty(); own = own.substr(0, own.rfind('/'))) {
    folders.push_back(absl::StrCat(root, own));
  }
  folders.push_back(root);
  return folders;
}

// Processors' worth of time that a group may take; a share of one counts as a whole one.
absl::optional<int64_t> ProcessorsOf(const std::string& folder) {
  int64_t quota = 0;
  int64_t period = 0;
  if (const auto lines = LinesOf(folder + "/cpu.max"); !lines.empty()) {
    const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
    if (words.size() < 2 || !absl::SimpleAtoi(words[0], &quota) ||
        !absl::SimpleAtoi(words[1], &period)) {
      return absl::nullopt;  // `max 100000`
    }
  } else {
    quota = NumberIn(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = NumberIn(folder + "/cpu.cfs_period_us").value_or(0);
  }
  if (quota <= 0 || period <= 0) return absl::nullopt;
  return (quota - 1) / period + 1;
}

struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat: file pages that are given back on demand
};
constexpr MemoryFiles kVersion2 = {"/memory.max", "/memory.current", "inactive_file"};
constexpr MemoryFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                   "total_inactive_file"};

void LimitMemory(const std::string& folder, const MemoryFiles& files, Host* host) {
  const absl::optional<int64_t> limit = NumberIn(folder + files.limit);
  // Version 1 writes the largest multiple of a page for no limit.
  if (!limit.has_value() || *limit < 0 || *limit >= host->memory_bytes) return;
  host->limit_bytes = std::min(host->limit_bytes, *limit);
  const int64_t used = NumberIn(folder + files.used).value_or(0);
  const int64_t reclaimable = NumberAfter(folder + "/memory.stat", files.reclaimable).value_or(0);
  host->free_bytes = std::min(
      host->free_bytes, std::max<int64_t>(0, *limit - std::max<int64_t>(0, used - reclaimable)));
}

}  // namespace

Host ReadHost(const HostPaths& paths) {
  constexpr int64_t kKiB = 1024;
  Host host;
  int64_t processors = AffineProcessors();
  for (const std::string& folder : GroupFolders(paths, "cpu")) {
    processors = std::min(processors, ProcessorsOf(folder).value_or(processors));
  }
  host.processors = static_cast<int>(processors);
  const std::string memory = paths.proc + "/meminfo";
  if (const auto total = NumberAfter(memory, "MemTotal:")) host.memory_bytes = *total * kKiB;
  if (const auto free = NumberAfter(memory, "MemAvailable:")) host.free_bytes = *free * kKiB;
  for (const std::string& folder : GroupFolders(paths, "memory")) {
    LimitMemory(folder, kVersion2, &host);
    LimitMemory(folder, kVersion1, &host);
  }
  return host;
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "";
  return name;
}

absl::Status CheckMemory(int64_t bytes, const Host& host) {
  const auto refuse = [bytes](const auto&... has) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the ranks of this host need ", BytesText(bytes), ", ", has...));
  };
  if (bytes > host.memory_bytes) {
    return refuse("this machine has ", BytesText(host.memory_bytes));
  }
  if (bytes > host.limit_bytes) {
    return refuse("this process's control group may use ", BytesText(host.limit_bytes));
  }
  if (bytes <= host.free_bytes) return absl::OkStatus();
  return refuse("of this machine's memory ", BytesText(host.free_bytes), " are free");
}

}  // namespace mgc
