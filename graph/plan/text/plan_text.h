// The text form of plans (docs/plan.md): everything a plan file holds, to read, compare and edit.
//
//   plan @gpt2 version 5 {
//     flag "--tp" "2"
//     batch micro 1 global 8 micro_batches 4 seq 32 vocab 257
//     stages (0 0) (1 0)
//   }
//   mesh @m [tp=2, pp=2]
//   machine @cpu-threads { ... }
//   graph @gpt2 logical (...) { ... }
//   segment @layer.forward transient 4096 workspace 0 collectives 1 (transient, frame) {
//     slot %0 "layers.*.x": f32[8,64] @m[-,-]+tp in transient at 0 bytes 2048
//     slot %1 "layers.*.y": f32[8,64] @m[-,-] in frame at 0 bytes 2048
//     start 0 %1 = all_reduce(%0) {label="g"} forward at "model.cc":3:1
//     wait 0 forward
//   }
//   block @layer params 256 grads 256 states 512 { param "layers.*.w": f32[64] @m[-] ... }
//   class 0 {
//     hold @layer layer 1 params 0 grads 0 states 0
//     chunk stage 0 layers 0 2 embedding frame 8192 {
//       forward @layer.forward layer 0 (transient=65536, frame=frame+128)
//     }
//     train {
//       compute { 0F0 frame 0 wait 0RECV_F0   repeat 3 shift 1 { ... } }
//       transfers { 0SEND_F0 at 128 bytes 4096 peer 1 behind 2 of 0F0 after 0F0 }
//     }
//     ...
//   }
//
// Segments, blocks and formals go by their name, or by their number where an earlier one has the
// same name; slots by `%number`. Words of actions are those of PyTorch's pipeline schedules, with
// the stage in front. `repeat n shift d` is n times what its braces hold, each time with
// micro-batches d higher. Labels of errors: those of graph/text/parser.h, text_c10 for a plan of
// another version, and those of graph/plan/plan_check.h, at the segment, block or class.

#ifndef MGC_GRAPH_PLAN_TEXT_PLAN_TEXT_H_
#define MGC_GRAPH_PLAN_TEXT_PLAN_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// Deterministic; reads back as an equal plan.
std::string PrintPlan(const Plan& plan);

// Segments and blocks alone, in the same words; of a plan in the making, which has no model yet, so
// that instructions go without their places in files.
std::string PrintSegmentsAndBlocks(const Plan& plan);

// The plan in `text`; it has passed CheckPlan. `name` is what errors call the text.
// InvalidArgument: the first error of the text with its place, or else all violations.
absl::StatusOr<Plan> ParsePlan(absl::string_view text, absl::string_view name);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_TEXT_PLAN_TEXT_H_
