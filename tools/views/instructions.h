// The instructions of a plan, for reading: every segment once, then for each rank class what its
// chunks call and in which order its actions run.

#ifndef MGC_TOOLS_VIEWS_INSTRUCTIONS_H_
#define MGC_TOOLS_VIEWS_INSTRUCTIONS_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// Calls of the same segment for neighbouring layers.
struct CallRun {
  int segment = 0;
  int first_layer = 0;
  int last_layer = 0;
  int calls = 1;
};
std::vector<CallRun> RunsOf(const std::vector<Call>& calls);

// `layer.forward x12`, names separated by blanks.
std::string CallsText(const Plan& plan, const std::vector<Call>& calls);

// One line of a segment: `%y: f32[8,32] @m[dp,tp] = matmul(%x, %w) {...}`, `start 0: all-reduce g
// over tp, 4.0 KiB: %a -> %b`, `wait 0`.
std::string InstrText(const Plan& plan, const Segment& segment, const Instr& instr);

std::string InstructionsText(const Plan& plan);

// {"segments": [{"name", "transient_bytes", "slots": [...], "instructions": [...]}], "classes":
// [{"pp", "chunks": [{"stage", "prepare", "forward", "backward", "reduce"}], "update",
// "actions"}]}, calls as
// {"segment", "first_layer", "last_layer", "calls"}, actions with their loops as text.
std::string InstructionsJson(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_INSTRUCTIONS_H_
