// What a step takes when it is simulated: of lists in the making (simulate_step.h) or of a plan
// (predict_step.h).

#ifndef MGC_PASSES_PLAN_TIME_SIMULATED_STEP_H_
#define MGC_PASSES_PLAN_TIME_SIMULATED_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// One stretch of the simulated step, for timelines.
struct SimulatedSpan {
  int coordinate = 0;
  bool communication = false;
  std::string name;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // Of a plan's lists only (PredictStep).
  int64_t micro_batch = -1;                  // -1: of none
  int layer = kNoLayer;                      // of a collective
  int64_t bytes = -1;                        // of a collective its payload; -1: it moves none
  const std::vector<Call>* calls = nullptr;  // of an action, in the plan; null: it is none
};

// What collectives cost a class.
struct CollectiveTime {
  int64_t all_ns = 0;   // how long they run
  ExposedTime exposed;  // of that, while an action waits for them
  // Of a plan's lists only (PredictStep): of each action the smaller of compute and the collectives
  // that it starts.
  int64_t hideable_ns = 0;

  int64_t ExposedNs() const;
};

// What a class has done when a round of micro-batches begins: from one to the next is what a round
// takes.
struct RoundMark {
  int64_t at_ns = 0;
  int64_t busy_ns = 0;
  int64_t transfers_ns = 0;
  CollectiveTime collectives;
};

struct SimulatedStep {
  int64_t makespan_ns = 0;
  std::vector<int64_t> busy_ns;                // per class: its compute queue
  std::vector<int64_t> update_ns;              // of that, the update
  std::vector<CollectiveTime> collectives;     // per class
  std::vector<int64_t> transfers_ns;           // per class, as in ClassTime; of lists in the making
  std::vector<SimulatedSpan> spans;            // only if asked for
  std::vector<std::vector<RoundMark>> rounds;  // per class, where rounds are said to it
};

// How long the step takes. Where ranks share cores, whichever has work keeps all of them busy: what
// counts is the work of all ranks together, not who waits for whom.
int64_t StepNs(const SimulatedStep& step, const Mesh& mesh, const Machine& machine);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_SIMULATED_STEP_H_
