// Short ways to say a case, and the plans whose training is compared with that of one rank.

#ifndef MGC_TESTS_SAME_LOSS_TRAIN_CASES_H_
#define MGC_TESTS_SAME_LOSS_TRAIN_CASES_H_

#include <cstdint>
#include <vector>

#include "tests/same_loss/train_plan.h"

namespace mgc {

// Samples a step, unless the data-parallel size does not divide it.
inline constexpr int64_t kSameLossBatch = 16;

// One preset of each family on tp x pp x dp ranks, micro-batches of two samples, kSameLossBatch
// samples a step.
TrainCase GptCase(int64_t tp, int64_t pp, int64_t dp);
TrainCase LlamaCase(int64_t tp, int64_t pp, int64_t dp);

// The case with one thing changed.
TrainCase WithSequenceParallel(TrainCase c);
// Level 1 to 3; pieces shared by groups of so many ranks, 0: by all.
TrainCase WithZero(TrainCase c, int64_t level = 1, int64_t group = 0);
TrainCase WithNarrowSums(TrainCase c);  // gradients in bf16 over dp and cp
TrainCase WithSplitProducts(TrainCase c, int64_t pieces);
TrainCase WithContextParallel(TrainCase c, int64_t cp);
TrainCase WithSchedule(TrainCase c, ScheduleKind schedule, int64_t vp = 0);
TrainCase WithRecompute(TrainCase c, Recomputation recompute);

// Both families under every schedule, layout flag and recomputation, with ZeRO-1, odd vocabularies
// and shared kv heads.
std::vector<TrainCase> SameLossCases();

// Context parallelism over 2 and 4 ranks, beside everything else.
std::vector<TrainCase> ContextParallelCases();

}  // namespace mgc

#endif  // MGC_TESTS_SAME_LOSS_TRAIN_CASES_H_
