// A segment of a plan, checked and made ready to run on every rank of every class.
//
// Nothing of a plan file is believed: whatever would read or write outside a tile, run an op on
// types it refuses, or wait for something never started is an InvalidArgument here.

#ifndef MGC_RUNTIME_LOAD_SEGMENT_H_
#define MGC_RUNTIME_LOAD_SEGMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan.h"
#include "runtime/exchange.h"

namespace mgc {

// The bytes of one operand on one rank: `bytes` from `offset` behind formal `formal`.
struct LoadedSlot {
  int formal = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

enum class DataInput : uint8_t { kTokens, kTargets, kWeights };

struct LoadedInstr {
  const Instr* instr = nullptr;
  InstrKind kind = InstrKind::kCompute;
  std::vector<LoadedSlot> inputs;
  std::vector<LoadedSlot> outputs;
  int kernel = -1;                      // kCompute: counted over the segment
  int exchange = -1;                    // kStart, kWait: in order of starts
  DataInput data = DataInput::kTokens;  // kLoad
};

// One collective of a segment.
struct LoadedExchange {
  int instr = 0;  // its kStart
  // The sum of tied weights' gradients: a group of the first and the last pipeline coordinate.
  bool embedding = false;
  std::vector<Exchange> parts;  // one per operand, all over the same axes
};

struct LoadedSegment {
  const Segment* segment = nullptr;
  std::vector<LoadedInstr> instrs;
  std::vector<LoadedExchange> exchanges;  // in order of starts
  std::vector<int64_t> formal_ends;       // bytes used behind each formal; 0: none
  int num_kernels = 0;
};

// `plan` must outlive the result.
absl::StatusOr<LoadedSegment> LoadSegment(const Plan& plan, const Segment& segment);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_SEGMENT_H_
