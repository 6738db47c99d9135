// A configuration as the flags of mgc-compile that ask for it.

#ifndef MGC_PASSES_CONFIG_CONFIG_FLAGS_H_
#define MGC_PASSES_CONFIG_CONFIG_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "passes/config/check_config.h"
#include "passes/config/parallel_config.h"

namespace mgc {

// Names and values, a switch without one: all sizes, and of the rest what is not the default. What
// was left open has its value of `checked`.
std::vector<std::pair<std::string, std::string>> FlagsOf(const ParallelConfig& config,
                                                         const CheckedConfig& checked);

// What a search decides, as one would type it: `--tp 8 --pp 16 --sequence-parallel ...`. Values
// that are the defaults are left out, but for the micro-batch size.
std::string FlagsText(const ParallelConfig& config);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_CONFIG_FLAGS_H_
