// Configurations that differ from one in a single choice.

#ifndef MGC_TOOLS_ADVICE_NEIGHBOURS_H_
#define MGC_TOOLS_ADVICE_NEIGHBOURS_H_

#include <string>
#include <vector>

#include "passes/config/parallel_config.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

// A configuration with one choice changed.
struct Neighbour {
  std::string change;  // as flags: `--tp 16`
  ParallelConfig config;
};

// Of every choice that is not fixed the next values up and down.
std::vector<Neighbour> NeighboursOf(const FixedChoices& fixed, const ParallelConfig& config);

}  // namespace mgc

#endif  // MGC_TOOLS_ADVICE_NEIGHBOURS_H_
