// What must not move: plans of both families under every schedule, layout flag and recomputation,
// with ZeRO-1, odd vocabularies and shared kv heads, up to the presets of 405B and 1T, and what is
// pinned of each.
//
//   summaries.txt    collectives by phase, kind, group and label with their number and bytes, peak,
//                    predicted step, a hash of the plan's normal form
//   losses.txt       the bits of five steps' losses of the plans that are trained, and the
//                    instruction set they belong to
//   text_hashes.txt  a hash of the plan's whole text
//
// A change that moves a line of the first two changes what mgc computes; one that moves only
// text_hashes.txt changes how a plan is spelled. Both say in their commit message what moved and
// why. `tests/plan_corpus/renew` writes the files anew.

#ifndef MGC_TESTS_PLAN_CORPUS_PINNED_PLANS_H_
#define MGC_TESTS_PLAN_CORPUS_PINNED_PLANS_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/plan_forms/corpus.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {

// A plan that is pinned: one that is trained, or one that is only compiled.
struct PinnedCase {
  std::string name;
  bool trained = false;
  TrainCase train;  // if trained
  PlanCase plan;    // otherwise
};

std::vector<PinnedCase> PinnedCases();

// Whole files.
struct PinFiles {
  std::string summaries;
  std::string losses;
  std::string text_hashes;
};
PinFiles MakePinFiles();

// `x86-64-v4`, ...: kernels of another one round otherwise.
std::string InstructionSet();

}  // namespace mgc

#endif  // MGC_TESTS_PLAN_CORPUS_PINNED_PLANS_H_
