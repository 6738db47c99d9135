// What decides the numbers of a run beside plan and data, as names and values: for checkpoints, and
// for what is told of one that goes on under others.

#ifndef MGC_RUNTIME_TRAIN_OPTION_TEXTS_H_
#define MGC_RUNTIME_TRAIN_OPTION_TEXTS_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "runtime/state/manifest.h"
#include "runtime/train/trainer.h"

namespace mgc {

// Names are those of mgc-run's flags, where there are any.
NamedTexts OptionTexts(const TrainOptions& options, const Plan& plan);

// A line `<what> lr was 0.001, is 0.01` for each name whose values differ.
std::vector<std::string> Changes(const std::string& what, const NamedTexts& before,
                                 const NamedTexts& now);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_OPTION_TEXTS_H_
