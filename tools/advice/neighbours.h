// Configurations that differ from one in a single choice.

#ifndef MGC_TOOLS_ADVICE_NEIGHBOURS_H_
#define MGC_TOOLS_ADVICE_NEIGHBOURS_H_

#include <string>
#include <vector>

#include "passes/config/parallel_config.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

// A configuration with one choice changed, and what that brings along.
struct Neighbour {
  std::string change;  // as flags: `--tp 16`
  ParallelConfig config;
  bool saves = false;  // whether the change is one towards less memory
};

// What does not change.
struct NeighbourLimits {
  FixedChoices fixed;
  bool ranks = true;  // of a size that dp cannot give a factor of two: twice as many ranks
};

// Of every choice that is not fixed the next values up and down; of a size that is odd 1 below it.
// Whether they are legal is not looked at.
std::vector<Neighbour> NeighboursOf(const NeighbourLimits& limits, const ParallelConfig& config);

}  // namespace mgc

#endif  // MGC_TOOLS_ADVICE_NEIGHBOURS_H_
