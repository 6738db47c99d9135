// What of a rank's memory is alive when it needs most, by liveness alone: wherever values lie, the
// plan's order of computation needs that much.

#ifndef MGC_TOOLS_VIEWS_PEAK_H_
#define MGC_TOOLS_VIEWS_PEAK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// Equal values of several layers, micro-batches or blocks.
struct LiveBuffer {
  std::string what;  // `parameters of layer`, `activation layers.*.mlp.up`, `transient tokens`, ...
  int64_t count = 0;
  int64_t bytes = 0;  // of each, with the room up to the next
};

// An instruction of a training step at which most bytes are alive, the first of several.
struct PeakMoment {
  int64_t bytes = 0;
  std::string action;  // `0B3`
  std::string segment;
  int layer = kNoLayer;
  int instr = -1;  // number in the segment; -1: the class runs nothing
  std::string op;
  std::string source;               // file:line:col of the model, empty where it has none
  std::vector<LiveBuffer> buffers;  // all that is alive, most bytes first
};

// Alive are: parameters, gradients, optimizer state and values of the step, all the time; working
// copies of parameters in forward and backward; what forward keeps for backward, from where it is
// written to where it is read last; boundaries while an action uses them, a forward's input until
// its backward has; links and transients from instruction to instruction. A slot of the pool of
// boundaries is not counted for a transfer alone. The plan has passed graph/plan/plan_check.h.
PeakMoment FindPeak(const Plan& plan, const PlanClass& plan_class);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PEAK_H_
