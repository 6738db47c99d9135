// A random model and a random configuration for it, and what becomes of them.

#ifndef MGC_TESTS_RANDOM_MODELS_RANDOM_CASE_H_
#define MGC_TESTS_RANDOM_MODELS_RANDOM_CASE_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "passes/config/parallel_config.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

struct RandomCase {
  uint64_t seed = 0;
  Graph model;
  ParallelConfig parallel;
  absl::optional<StrategySpec> strategy;  // none: what mgc-compile takes by itself
};

// The same case for the same seed.
RandomCase MakeRandomCase(uint64_t seed);

// The model as text, the strategy where there is one, and the command that compiles it.
std::string TextOf(const RandomCase& c);

enum class Ending {
  kProved,          // and trained like one rank, where that was asked for
  kBeyondF32,       // proved; f32 on one rank is far from float64, and nothing was compared
  kRefused,         // before there was a plan, as a mistake of the user's
  kRefusedByProof,  // a plan was compiled that the proof refuses
  kFailed,          // another error
  kReplicated,      // a plan that cuts nothing by an axis that was asked for
  kOtherNumbers,    // proved, and does not train as one rank does
  kAborted,         // the process died
  kHung,            // it took more time than any case may
};
std::string NameOf(Ending ending);

struct Outcome {
  Ending ending = Ending::kProved;
  std::string label;    // the rule's, of a refusal
  std::string message;  // what was said, or where it ended
};

// Compiles the case and proves its plan; with `train`, trains it and the same model on one rank. In
// a process of its own, so that none of its endings ends the caller, who has one thread.
Outcome Try(const RandomCase& c, bool train);

// Whether a case may end so.
bool IsRight(Ending ending);

// The smallest case found that ends as `c` does, at most `tries` looked at. Nodes are bypassed,
// loss terms left out, axes and switches turned off.
RandomCase Shrink(const RandomCase& c, bool train, int tries);

}  // namespace mgc

#endif  // MGC_TESTS_RANDOM_MODELS_RANDOM_CASE_H_
