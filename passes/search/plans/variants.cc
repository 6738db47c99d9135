#include "passes/search/plans/variants.h"

#include <algorithm>

#include "graph/base/status.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/layer_variants.h"

namespace mgc {

absl::optional<size_t> Variants::Find(const ParallelConfig& config) const {
  const std::string flags = FlagsText(config);
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Variant& variant) {
    return FlagsText(variant.config) == flags;
  });
  if (found == all_.end()) return absl::nullopt;
  return static_cast<size_t>(found - all_.begin());
}

int64_t Variants::BytesFor(const ParallelConfig& config) const {
  return static_cast<int64_t>(static_cast<double>(memory_) / needed_[PlanKindOf(config)]);
}

absl::StatusOr<absl::optional<LayerChoice>> Variants::ChoiceFor(size_t group, size_t index) const {
  return oracle_.ChooseFor(group, index, BytesFor(oracle_.space().ConfigOf(group, index)));
}

absl::Status Variants::Choose(size_t group, size_t index) {
  return Choose(group, index, BytesFor(oracle_.space().ConfigOf(group, index)));
}

absl::Status Variants::Choose(size_t group, size_t index, int64_t within) {
  MGC_ASSIGN_OR_RETURN(const auto choice, oracle_.ChooseFor(group, index, within));
  if (!choice.has_value()) {
    ++too_large_;
    return absl::OkStatus();
  }
  Push({group, index, choice->config, choice->bound, within, choice->estimate_ns});
  return absl::OkStatus();
}

void Variants::Push(Variant variant) {
  frontier_.PushVariant(all_.size(), PlanKindOf(variant.config), variant.bound.step_ns,
                        std::max(variant.bound.step_ns, variant.estimate_ns));
  all_.push_back(std::move(variant));
}

absl::Status Variants::Expand(const SearchNode& candidate) {
  const ParallelConfig even = oracle_.space().ConfigOf(candidate.group, candidate.index);
  const std::vector<ParallelConfig> cuts =
      CutsOf(even, oracle_.request().dims, oracle_.HasFreeCuts(even));
  if (cuts.empty()) return ChooseOpen(candidate.group, candidate.index, candidate.bound);
  for (const ParallelConfig& config : cuts) {
    MGC_RETURN_IF_ERROR(ExpandConfig(candidate.group, candidate.index, config));
  }
  return absl::OkStatus();
}

absl::Status Variants::ChooseOpen(size_t group, size_t index, int64_t least_ns) {
  if (!opened_.insert({group, index}).second) return absl::OkStatus();
  MGC_ASSIGN_OR_RETURN(const auto choice, oracle_.ChooseFor(group, index, memory_));
  if (!choice.has_value()) return absl::OkStatus();
  open_ns_ = std::min(open_ns_, least_ns);
  Push({group, index, choice->config, choice->bound, memory_, choice->estimate_ns});
  return absl::OkStatus();
}

absl::Status Variants::ExpandConfig(size_t group, size_t index, const ParallelConfig& config) {
  MGC_ASSIGN_OR_RETURN(const auto bound, oracle_.BoundOf(group, config));
  if (!bound.has_value()) return absl::OkStatus();
  Variant variant{group, index, config, *bound, memory_};
  if (bound->peak_bytes <= memory_) {
    MGC_ASSIGN_OR_RETURN(variant.estimate_ns, oracle_.EstimateOf(group, config));
    Push(std::move(variant));
    return absl::OkStatus();
  }
  NoteTooLarge(config, bound->peak_bytes);
  return ExpandRecomputed(variant);
}

// What has one layer more that is computed again, or computes more of one again.
absl::Status Variants::ExpandRecomputed(const Variant& variant) {
  if (!oracle_.HasFreeRecomputation()) return absl::OkStatus();
  const ModelDims& dims = oracle_.request().dims;
  if (!HasFewRecomputations(dims)) {
    return ChooseOpen(variant.group, variant.index, variant.bound.step_ns);
  }
  for (const ParallelConfig& config : MoreRecomputedThan(variant.config, dims)) {
    if (!expanded_.insert(FlagsText(config)).second) continue;
    MGC_RETURN_IF_ERROR(ExpandConfig(variant.group, variant.index, config));
  }
  return absl::OkStatus();
}

absl::Status Variants::NeedsMore(size_t v, const FoundPlan& plan) {
  const Variant variant = all_[v];
  NoteTooLarge(plan.config, plan.peak_bytes);
  double& needed = needed_[PlanKindOf(plan.config)];
  needed =
      std::max(needed, static_cast<double>(plan.peak_bytes) /
                           static_cast<double>(std::max<int64_t>(variant.bound.peak_bytes, 1)));
  if (frontier_.proves()) return ExpandRecomputed(variant);
  const int64_t within = variant.within - (plan.peak_bytes - memory_);
  if (within < memory_ / 2) return absl::OkStatus();
  return Choose(variant.group, variant.index, within);
}

void Variants::NoteTooLarge(const ParallelConfig& config, int64_t bytes) {
  ++too_large_;
  if (bytes >= least_peak_) return;
  least_peak_ = bytes;
  least_peak_config_ = config;
}

}  // namespace mgc
