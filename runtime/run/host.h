// What this machine gives this process: processors to run on and memory to use.
//
// A process rarely owns its machine. Affinity (taskset, a batch system) takes processors away; a
// control group (a container) limits processor time and memory, in a file system of version 2
// (cpu.max, memory.max) or version 1 (cpu.cfs_quota_us, memory.limit_in_bytes). Limits hold from
// the process's own group up to the root, so the least counts. What cannot be read limits nothing.

#ifndef MGC_RUNTIME_RUN_HOST_H_
#define MGC_RUNTIME_RUN_HOST_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"

namespace mgc {

struct Host {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  int processors = 1;                 // to keep busy at the same time; at least 1
  int64_t memory_bytes = kUnlimited;  // of the machine
  int64_t limit_bytes = kUnlimited;   // that the control groups let the process use
  int64_t free_bytes = kUnlimited;    // that it can still get, of either
};

// Where the system tells; tests give folders of their own.
struct HostPaths {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Reads it anew at each call. A share of a processor counts as a whole one.
Host ReadHost(const HostPaths& paths = {});

// This host's name; empty where it has none.
std::string HostName();

// OK when `bytes` fit; else ResourceExhausted with what is needed and what there is: more than the
// machine has, than the control group allows, or than is free now.
absl::Status CheckMemory(int64_t bytes, const Host& host);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_HOST_H_
