// What kernels took, beside the least that a machine allows: by flops at the peak rate of the
// element type, by bytes at the peak bandwidth of memory (the roofline model; Williams, Waterman
// and Patterson 2009). Efficiencies of the machine and its overhead of an op are left out, so that
// what is lost to them shows.

#ifndef MGC_TOOLS_VIEWS_ROOFLINE_ROOFLINE_H_
#define MGC_TOOLS_VIEWS_ROOFLINE_ROOFLINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "tools/views/drawings/timeline.h"

namespace mgc {

// Calls of one op with operands and results of the same types, over all ranks and steps measured.
struct RooflineRow {
  std::string op;
  std::string shapes;  // of one rank: `bf16[8,768] bf16[768,64] -> bf16[8,64]`
  int64_t calls = 0;
  double seconds = 0;        // measured
  double flops_seconds = 0;  // at least, for the flops
  double bytes_seconds = 0;  // at least, for the bytes

  double limit() const { return flops_seconds > bytes_seconds ? flops_seconds : bytes_seconds; }
  double gap() const { return seconds - limit(); }
};

// The measured instructions of a timeline, largest gap first. `machine`: whose limits; with `cores`
// its rates are those of one core. InvalidArgument where the timeline has no measured instruction,
// or one that the plan lacks.
absl::StatusOr<std::vector<RooflineRow>> Roofline(const Plan& plan, const Machine& machine,
                                                  const Timeline& timeline);

// A table; unless `all`, its first rows, and the others in one.
std::string RooflineText(const Machine& machine, const std::vector<RooflineRow>& rows, bool all);

// {"machine": ..., "kernels": [{"op", "shapes", "calls", "seconds", "flops_seconds",
// "bytes_seconds"}, ...]}
std::string RooflineJson(const Machine& machine, const std::vector<RooflineRow>& rows);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_ROOFLINE_ROOFLINE_H_
