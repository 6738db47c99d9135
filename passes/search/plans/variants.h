// The variants of candidates that one search comes to: with layers chosen for their stages
// (choose_layers.h), or, to prove that none is faster, all that there are (layer_variants.h).

#ifndef MGC_PASSES_SEARCH_PLANS_VARIANTS_H_
#define MGC_PASSES_SEARCH_PLANS_VARIANTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "passes/search/plans/frontier.h"
#include "passes/search/plans/plan_oracle.h"

namespace mgc {

struct Variant {
  size_t group = 0;
  size_t index = 0;  // of the candidate
  ParallelConfig config;
  PlanBound bound;
  int64_t within = 0;  // the bytes that layers were chosen for
  int64_t estimate_ns = 0;
};

class Variants {
 public:
  // Oracle and frontier outlive it. `memory`: bytes of a rank.
  Variants(PlanOracle& oracle, Frontier& frontier, int64_t memory)
      : oracle_(oracle), frontier_(frontier), memory_(memory) {
    needed_.fill(1);
  }

  const Variant& At(size_t variant) const { return all_[variant]; }
  // The one of a configuration.
  absl::optional<size_t> Find(const ParallelConfig& config) const;

  // Puts into the frontier, of a candidate, the variant that is likely to be its fastest.
  absl::Status Choose(size_t group, size_t index);
  // That one's layers; nothing where none fit.
  absl::StatusOr<absl::optional<LayerChoice>> ChoiceFor(size_t group, size_t index) const;
  // The bytes that layers are chosen for: fewer than a rank has where plans of the kind have needed
  // more than their bounds.
  int64_t BytesFor(const ParallelConfig& config) const;
  // All its variants, where they are few: first those that compute nothing again; those that do
  // where one without does not fit. Else the likely one, and what the others may take is open.
  absl::Status Expand(const SearchNode& candidate);
  // The plan of a variant does not fit, of which its bound knew nothing: the same with layers that
  // need less.
  absl::Status NeedsMore(size_t variant, const FoundPlan& plan);

  void NoteTooLarge(const ParallelConfig& config, int64_t bytes);

  // What candidates with too many variants may take, at least; kNever where there are none.
  int64_t open_ns() const { return open_ns_; }
  int64_t too_large() const { return too_large_; }
  // Of all that were too large, the least; kNever where none was.
  int64_t least_peak() const { return least_peak_; }
  const ParallelConfig& least_peak_config() const { return least_peak_config_; }

 private:
  absl::Status Choose(size_t group, size_t index, int64_t within);
  void Push(Variant variant);
  absl::Status ChooseOpen(size_t group, size_t index, int64_t least_ns);
  absl::Status ExpandConfig(size_t group, size_t index, const ParallelConfig& config);
  absl::Status ExpandRecomputed(const Variant& variant);

  PlanOracle& oracle_;
  Frontier& frontier_;
  const int64_t memory_;
  std::vector<Variant> all_;
  std::array<double, kNumPlanKinds> needed_;    // times their bounds, of plans that did not fit
  std::set<std::string> expanded_;              // by flags, of those that compute more again
  std::set<std::pair<size_t, size_t>> opened_;  // candidates with too many variants
  int64_t open_ns_ = kNever;
  int64_t too_large_ = 0;
  int64_t least_peak_ = kNever;
  ParallelConfig least_peak_config_;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_VARIANTS_H_
