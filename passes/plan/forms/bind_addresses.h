// From the parts of a plan in the making (passes/plan/forms/plan_forms.h) to those of a plan, by
// whoever knows where things lie. Nothing is looked up: parts may name what does not exist.

#ifndef MGC_PASSES_PLAN_FORMS_BIND_ADDRESSES_H_
#define MGC_PASSES_PLAN_FORMS_BIND_ADDRESSES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// Where the region begins that formal number `formal` of a call's segment names. Asked for bindings
// of StagedBase::kRegion.
using RegionBase = std::function<int64_t(const StagedCall& call, size_t formal)>;

std::vector<Call> BindCalls(const std::vector<StagedCall>& staged, const RegionBase& base);
std::vector<Chunk> BindChunks(const std::vector<StagedChunk>& staged, const RegionBase& base);

// Boundary slots lie side by side.
class BoundarySlots {
 public:
  // `bytes` of each, the first at `base`.
  BoundarySlots(int64_t base, const std::vector<int64_t>& bytes);
  // -1 for none, and for what is no slot.
  int64_t AddressOf(int64_t slot) const;

 private:
  std::vector<int64_t> addresses_;
};
// `frames` by action, -1 where there is none.
Program BindProgram(OrderedProgram ordered, const std::vector<int64_t>& frames,
                    const BoundarySlots& slots);

std::vector<NamedAddress> BindNames(const std::vector<NamedOffset>& offsets, int64_t base);
std::vector<NamedTensor> BindResults(const std::vector<StagedResult>& results, int64_t base);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_FORMS_BIND_ADDRESSES_H_
