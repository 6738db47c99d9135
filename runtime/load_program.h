// One class' program (a training or an evaluation step), resolved and put into its order of
// communication.

#ifndef MGC_RUNTIME_LOAD_PROGRAM_H_
#define MGC_RUNTIME_LOAD_PROGRAM_H_

#include "absl/status/status.h"
#include "runtime/load_plan.h"

namespace mgc {

// What a program's references refer to.
struct ProgramContext {
  const Plan& plan;
  const PlanClass& plan_class;
  const std::vector<Chunk>& chunks;
  const std::vector<LoadedChunk>& loaded;
  const std::vector<LoadedCall>& update;
};

// Fills everything but groups and signatures of the communication items. InvalidArgument names the
// action or transfer that is wrong.
absl::Status LoadProgram(const ProgramContext& context, const Program& program, LoadedProgram* out);

// Checks that every send of any class has its receive, with as many bytes, and the reverse.
absl::Status MatchTransfers(const std::vector<const LoadedProgram*>& classes);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_PROGRAM_H_
