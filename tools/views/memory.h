// What a rank of each class keeps in memory, by purpose.

#ifndef MGC_TOOLS_VIEWS_MEMORY_H_
#define MGC_TOOLS_VIEWS_MEMORY_H_

#include <string>

#include "graph/plan/plan.h"

namespace mgc {

// A row for each rank class, binary units; the class with the highest peak is named below.
std::string MemoryText(const Plan& plan);

// {"device_bytes", "classes": [{"pp", "ranks", "params", ..., "peak", "workspace"}]}: bytes.
std::string MemoryJson(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_MEMORY_H_
