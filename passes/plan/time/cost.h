// How long things take on a machine: integer nanoseconds, so that orders and hashes of plans do not
// hang on rounding.
//
//   an op          overhead + factor of the op and its element type
//                      * max(flops / rate of the type for so many, bytes / memory bandwidth)
//   a collective   passes/plan/time/ring_time.h
//   a transfer     latency + bytes / bandwidth, of the innermost tier that joins the two ranks
//
// Where some groups of the class lie within a machine and others do not, the slower ones count.

#ifndef MGC_PASSES_PLAN_TIME_COST_H_
#define MGC_PASSES_PLAN_TIME_COST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/collective.h"
#include "graph/plan/plan.h"
#include "graph/types/axis.h"
#include "graph/types/machine.h"

namespace mgc {

// What costs depend on beside the instructions. All outlive it.
struct CostModel {
  const Mesh& mesh;
  const Machine& machine;
  const std::vector<StagePlace>& stages;  // whose classes collectives join
};

// Floating-point operations of one instruction on one rank; the most where ranks differ.
double FlopsOf(const Mesh& mesh, const Segment& segment, const Instr& instr);

// The element type that it computes in: that of its first real tensor. A sum of f32 to which
// products of a narrower type are added comes first and does not count.
DType ComputedIn(const Segment& segment, const Instr& instr);

// Bytes that it reads and writes.
double BytesOf(const Mesh& mesh, const Segment& segment, const Instr& instr);

// No duration is longer, and no step may take as long: sums of two stay in range.
inline constexpr int64_t kMaxNs = int64_t{1} << 61;

// `ns` after `time`, both from 0 to kMaxNs, or kMaxNs where that is later still.
inline int64_t Later(int64_t time, int64_t ns) { return std::min(time + ns, kMaxNs); }

// `ns` so many times over, from 0 to kMaxNs.
inline int64_t Times(int64_t count, int64_t ns) {
  const double all = static_cast<double>(count) * static_cast<double>(ns);
  return all >= static_cast<double>(kMaxNs) ? kMaxNs : count * ns;
}

// The error for a step that would take that long. [S4]
absl::Status StepOfCenturies(const Machine& machine);

// Duration of a compute or load instruction.
int64_t ComputeNs(const CostModel& model, const Segment& segment, const Instr& instr);

// Where the first rank of a class lies in the largest domain of the machine: whatever two classes
// of one place both run takes them as long.
int64_t PlaceOfClass(const CostModel& model, int coordinate);

// Duration of the collective an instruction starts, in a class.
int64_t CollectiveNs(const CostModel& model, const Segment& segment, const Instr& instr,
                     int coordinate);

// What a collective exchanges.
struct GroupExchange {
  AxisSet axes = {};
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t payload_bytes = 0;
};
int64_t CollectiveNs(const CostModel& model, const GroupExchange& exchange, int coordinate);

// The tier that boundary transfers between two classes need, of the model's machine.
const NetworkTier& TransferTier(const CostModel& model, int from, int to);

// Duration of a transfer over a tier, and of a boundary transfer between two classes.
int64_t TransferNs(const NetworkTier& tier, int64_t bytes);
int64_t TransferNs(const CostModel& model, int from, int to, int64_t bytes);

// A segment as the simulation sees it: compute, start of a collective, wait for one; and, of calls,
// the wait for collectives of calls before.
struct TimedStep {
  enum Kind : uint8_t { kRun, kStart, kWait, kAwait } kind = kRun;
  int64_t ns = 0;           // of kRun; of kStart: how long the collective takes
  int collective = 0;       // within the segment; of kAwait: how many may run
  bool background = false;  // of kStart: the segment does not wait for it
  AxisSet axes = {};        // of kStart and kWait: those that the collective goes over
};
std::vector<TimedStep> TimeSegment(const CostModel& model, const Segment& segment, int coordinate);

// By segment.
using TimedSegments = std::vector<std::vector<TimedStep>>;

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_COST_H_
