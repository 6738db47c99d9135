// Trains a plan of any model on made-up samples, and compares with another plan of the same model.

#ifndef MGC_TESTS_SAME_LOSS_TRAIN_SAMPLES_H_
#define MGC_TESTS_SAME_LOSS_TRAIN_SAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "passes/config/parallel_config.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {

// The values of an input for a number of samples, the first dim of the shape.
struct Samples {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> reals;      // of an f32 input
  std::vector<int64_t> indices;  // of an i64 input
};

// Reals between -1 and 1, `weights` between 0.5 and 1.5, indices inside of what they are looked up
// in, every fifth the one that the model ignores, if any, and 0 to 2 where none is looked up.
// Sample i is the same whatever the plan and however many there are.
Samples SamplesOf(const Plan& plan, const DataInput& input, int64_t samples);

// Trains on samples for every data input of the plan.
absl::StatusOr<TrainResult> TrainOnSamples(const Plan& plan, int64_t steps, uint64_t seed);

// What TrainOnSamples begins with.
absl::StatusOr<Tensors> FirstParameters(const Plan& plan, uint64_t seed);

// The configuration of one rank that takes the same samples in each micro-batch and step.
ParallelConfig OnOneRank(const ParallelConfig& parallel);

// How `many` differs from `one` by more than rounding, empty where it does not: losses and norms of
// gradients of the first step by 1e-6, later losses by 1e-5, each parameter's gradient by 1e-5 in
// the L2 norm, all relative. What cancels is held against what it is a part of: gradients against
// 1e-6 of their global norm.
std::string Difference(const TrainResult& one, const TrainResult& many);

}  // namespace mgc

#endif  // MGC_TESTS_SAME_LOSS_TRAIN_SAMPLES_H_
