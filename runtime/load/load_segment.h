// A segment of a plan, resolved for every rank of every class.

#ifndef MGC_RUNTIME_LOAD_LOAD_SEGMENT_H_
#define MGC_RUNTIME_LOAD_LOAD_SEGMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "graph/plan/step_tables.h"
#include "runtime/load/exchange.h"

namespace mgc {

// The bytes of one operand on one rank: `bytes` from `offset` behind formal `formal`.
struct LoadedSlot {
  int formal = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct LoadedInstr {
  const Instr* instr = nullptr;
  InstrKind kind = InstrKind::kCompute;
  std::vector<LoadedSlot> inputs;
  std::vector<LoadedSlot> outputs;
  int kernel = -1;    // kCompute: counted over the segment
  int exchange = -1;  // kStart, kWait: in order of starts
  int data = -1;      // kLoad: which of the plan's data inputs
};

// One collective of a segment.
struct LoadedExchange {
  int instr = 0;  // its kStart
  const StepStart* start = nullptr;
  int group = -1;               // index into LoadedPlan::groups
  std::vector<Exchange> parts;  // one per operand, all over the same axes
};

struct LoadedSegment {
  const Segment* segment = nullptr;
  std::vector<LoadedInstr> instrs;
  std::vector<LoadedExchange> exchanges;  // in order of starts
  int num_kernels = 0;
};

// Of a plan that has passed graph/plan/plan_check.h, which must outlive the result.
// `inputs` are its data inputs. Groups are left open.
LoadedSegment LoadSegment(const Plan& plan, absl::Span<const DataInput> inputs,
                          const StepSegment& segment);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_LOAD_SEGMENT_H_
