// Parts of graph/verify/memory/memory.h that lie in files of their own.

#ifndef MGC_GRAPH_VERIFY_MEMORY_MEMORY_INTERNAL_H_
#define MGC_GRAPH_VERIFY_MEMORY_MEMORY_INTERNAL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/step_tables.h"
#include "graph/verify/common/memory_ranges.h"

namespace mgc {

// Bytes that have a meaning of their own for the whole step.
struct NamedRange {
  std::string name;
  Range range;
};
// `params of layer, layer 3`, `grads of ...`, `states of ...`, of all blocks that a class holds.
std::vector<NamedRange> BlockRanges(const Plan& plan, const PlanClass& plan_class);

// Whether a formal that is bound to a fixed address is dead when the action ends: the transient
// region, and links between layers (docs/plan.md, Segments).
bool IsScratch(const Segment& segment, size_t formal);

// By fixed address: what calls keep for the step in blocks and elsewhere, and what is dead when
// their action ends.
struct FixedRanges {
  std::map<int64_t, int64_t> in_blocks;  // from where a block begins to the last end behind it
  std::vector<Range> kept;               // elsewhere; merged
  // Working copies, by what they are copies of: a block with a name, or a layer's own.
  std::map<std::string, std::vector<Range>> copies;
  std::vector<Range> scratch;  // merged
};
FixedRanges FixedRangesOf(const Plan& plan, const std::vector<Call>& calls);

// memory_v1, v2: blocks, values of the whole step, frames and scratch are apart.
void CheckRegions(const StepTables& tables, Diagnostics* findings);

// memory_v3: what an instruction reads is what was put there. memory_v6: parameters, states and
// carried numbers are written by the update only.
void CheckValues(const StepTables& tables, Diagnostics* findings);

// memory_v4: stated numbers of bytes.
void CheckNumbers(const Plan& plan, const StepTables& train, const StepTables& eval,
                  Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEMORY_MEMORY_INTERNAL_H_
