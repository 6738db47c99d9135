// What a rank of each class keeps in memory, by purpose; what is alive when it needs most.

#ifndef MGC_TOOLS_VIEWS_MEMORY_H_
#define MGC_TOOLS_VIEWS_MEMORY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// What memory is for, as columns and keys call it; the peak and the workspace apart from it.
struct MemoryPurpose {
  const char* name;
  int64_t MemoryUse::*bytes;
};
inline constexpr std::array<MemoryPurpose, 9> kMemoryPurposes = {{
    {"params", &MemoryUse::params},
    {"grads", &MemoryUse::grads},
    {"optimizer", &MemoryUse::states},
    {"copies", &MemoryUse::copies},
    {"activations", &MemoryUse::frames},
    {"boundaries", &MemoryUse::boundaries},
    {"transient", &MemoryUse::transient},
    {"peak", &MemoryUse::peak},
    {"workspace", &MemoryUse::workspace},
}};

// Another configuration of the plan's model that needs less memory.
struct MemoryOption {
  std::string flags;    // what changes: `--recompute full`
  int64_t peak = 0;     // of the rank that needs most
  int64_t step_ns = 0;  // predicted
};

struct MemoryAdvice {
  std::vector<MemoryOption> options;  // lowest peak first
  std::vector<std::string> notes;     // for stderr
};

// Of the rank that needs most, workspaces apart.
int64_t HighestPeak(const Plan& plan);

// A row for each rank class, binary units; the class with the highest peak is named below. Unless
// `all`, three or more neighbours are one row where, as printed, their bytes are equal or change
// evenly from class to class: `119.1 GiB to 104.2 GiB`.
std::string MemoryTable(const Plan& plan, bool all = false);

// The table; of the class with the highest peak what is alive at its worst instruction
// (tools/views/peak.h): where that is, how near the peak is, the ten largest buffers; and the
// advice, with shares of the plan's own peak and step.
std::string MemoryText(const Plan& plan, const MemoryAdvice& advice, bool all = false);

// {"device_bytes", "predicted_step_ns", "classes": [{"pp", "ranks", "params", ..., "peak",
// "workspace", "alive": {"bytes", "action", "segment", "layer", "instruction", "op", "source",
// "buffers": [{"what", "count", "bytes"}]}}], "lower": [{"flags", "peak", "step_ns"}]}: bytes, all
// buffers, most bytes first.
std::string MemoryJson(const Plan& plan, const MemoryAdvice& advice);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_MEMORY_H_
