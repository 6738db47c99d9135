// One class' program (a training or an evaluation step), resolved and put into its order of
// communication.

#ifndef MGC_RUNTIME_LOAD_PROGRAM_H_
#define MGC_RUNTIME_LOAD_PROGRAM_H_

#include "runtime/load_plan.h"

namespace mgc {

// What a program's references refer to.
struct ProgramContext {
  const std::vector<Chunk>& chunks;
  const std::vector<LoadedChunk>& loaded;
  const std::vector<LoadedCall>& update;
};

// Everything but groups and signatures of the communication items. The plan has passed
// graph/plan_check.h.
LoadedProgram LoadProgram(const ProgramContext& context, const Program& program);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_PROGRAM_H_
