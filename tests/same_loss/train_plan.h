// Compiles a tiny preset for a layout and trains it on threads, for tests that compare plans.

#ifndef MGC_TESTS_SAME_LOSS_TRAIN_PLAN_H_
#define MGC_TESTS_SAME_LOSS_TRAIN_PLAN_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "passes/compile.h"
#include "passes/config/parallel_config.h"
#include "runtime/train/trainer.h"

namespace mgc {

struct TrainCase {
  std::string preset = "gpt2-tiny";
  int64_t vocab = 257;
  int64_t vocab_multiple = 1;
  int64_t kv_heads = 0;  // 0: the preset's
  int64_t layers = 0;    // 0: the preset's
  int64_t heads = 0;     // 0: the preset's, and its size of a head
  int64_t head_dim = 0;
  bool stretched = false;  // rotary frequencies as in Llama 3.1, for a short first length
  std::string shared;      // how layers share parameters (shared_layers.h); empty: they do not
  int64_t dp = 1;
  ParallelConfig parallel;  // world size and sequence length are filled in
};

// `gpt2-tiny_tp2_pp2_dp2_sp_...`: what differs from one rank.
std::string NameOf(const TrainCase& c);

// What a case is compiled from.
struct CaseModel {
  Graph model;
  ModelDims dims;
  CompileOptions options;
};
absl::StatusOr<CaseModel> ModelOf(const TrainCase& c);

absl::StatusOr<Plan> CompileCase(const TrainCase& c);

using Tensors = std::map<std::string, std::vector<float>>;

struct TrainResult {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  double sum_of_rates = 0;
  int left_out = 0;                     // steps
  Tensors gradients;                    // of step 1
  Tensors parameters;                   // at the end
  std::vector<int64_t> planned_peaks;   // by rank
  std::vector<int64_t> measured_peaks;  // by rank
};

// What a case is trained with; a loss scale, where there is one, begins where none of it overflows.
TrainOptions OptionsFor(const Plan& plan, const TrainCase& c, int64_t steps, int workers,
                        const KernelList& kernels);

// Trains any plan for `steps`.
absl::StatusOr<TrainResult> TrainWith(const Plan& plan, const TrainOptions& options, int64_t steps);

// The parameters that training begins with.
absl::StatusOr<Tensors> FirstParameters(const Plan& plan, const TrainOptions& options);

// Trains for `steps` on a fixed text.
absl::StatusOr<TrainResult> TrainCaseFor(const TrainCase& c, int64_t steps, int workers = 0);

// The same with another plan of the case, or from other first values.
inline constexpr uint64_t kTrainSeed = 1234;
absl::StatusOr<TrainResult> TrainPlan(const Plan& plan, const TrainCase& c, int64_t steps,
                                      int workers = 0, uint64_t seed = kTrainSeed);

// |a - b| / |a| in the L2 norm; 0 when both are zero. Numbers of f32 or f64.
template <class A, class B>
double RelativeL2(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{a[i]} * a[i];
  }
  if (difference == 0) return 0;
  return std::sqrt(difference / norm);
}

// Not a number where any element is none.
template <class A, class B>
double LargestDifference(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - b[i]);
    if (!(difference <= largest) && !std::isnan(largest)) largest = difference;
  }
  return largest;
}

}  // namespace mgc

#endif  // MGC_TESTS_SAME_LOSS_TRAIN_PLAN_H_
