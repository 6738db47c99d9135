// Which configurations a search may choose from: what the user has left open, in a fixed order.

#ifndef MGC_PASSES_SEARCH_PLANS_SEARCH_SPACE_H_
#define MGC_PASSES_SEARCH_PLANS_SEARCH_SPACE_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/base/diagnostic.h"
#include "graph/types/machine.h"
#include "graph/types/model_dims.h"
#include "graph/types/tensor_type.h"
#include "passes/config/check_config.h"
#include "passes/config/parallel_config.h"

namespace mgc {

// What a search does not change. All else of a configuration that is not named here (sequence
// length, global batch, layout flags) stays as it is given too.
struct FixedChoices {
  bool tp = false;
  bool cp = false;
  bool pp = false;
  bool chunks = false;  // vp and schedule
  bool cuts = false;    // which layers a stage has
  bool sequence_parallel = false;
  bool micro_batch_size = false;
  bool recompute = false;
  bool zero = false;
  bool zero_group = false;
  bool order = false;
  // Open only where it is asked for, since it changes what is computed: f32 or bf16.
  bool precision = true;
};

// What decides the profile of a candidate (passes/search/plans/model_profile.h), recomputation
// apart.
struct ProfileKey {
  int64_t tp = 1;
  int64_t cp = 1;
  bool sequence_parallel = false;
  int64_t micro_batch_size = 1;
  DType compute_type = DType::kF32;

  friend bool operator<(const ProfileKey& a, const ProfileKey& b) {
    return std::tie(a.tp, a.cp, a.sequence_parallel, a.micro_batch_size, a.compute_type) <
           std::tie(b.tp, b.cp, b.sequence_parallel, b.micro_batch_size, b.compute_type);
  }
};

ProfileKey KeyOf(const ParallelConfig& config);

// What a candidate has beside its profile key; there are many. Which layers its stages have and
// what is computed again in each is chosen for it (passes/search/plans/choose_layers.h).
struct Candidate {
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t zero_group = 0;
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  uint8_t zero = 0;
  uint8_t order = 0;  // in SearchSpace::orders
};

// A profile key, and how often it may be spread over the ranks that are left.
struct CandidateGroup {
  ProfileKey key;
  std::vector<Candidate> candidates;
};

struct SearchSpace {
  ParallelConfig base;                 // what all have in common
  std::vector<std::string> orders;     // of axes
  std::vector<CandidateGroup> groups;  // by key, ascending
  int64_t candidates = 0;              // in all groups
  // Of the values of tp, cp, pp and the micro-batch size that divide their total: how many
  // combinations are refused by a rule of passes/config/check_config.h.
  int64_t refused = 0;
  Diagnostics refusals;  // of each rule that did the first

  // As the user could ask for it: layers as even as possible, recomputation as in `base`.
  ParallelConfig ConfigOf(size_t group, size_t index) const;
  // The group of a candidate, with whatever layers.
  size_t GroupOf(const ParallelConfig& config) const;
};

// Values for `tp`, `cp` and `pp` are divisors of the world; of the micro-batch divisors of what is
// left of the global batch, at most 16 as chunks a rank are. cp is at most 64. ZeRO groups are all
// of dp, or the ranks of one innermost domain of the machine.
SearchSpace ListCandidates(const ParallelConfig& base, const FixedChoices& fixed,
                           const ModelDims& dims, const Machine& machine);

// Group and number of every candidate that differs from `config` in one choice that it has: a size
// by its half or double, a number of chunks by that or by one, all else by any other.
std::vector<std::pair<size_t, size_t>> NeighboursOf(const SearchSpace& space,
                                                    const ParallelConfig& config);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_SEARCH_SPACE_H_
