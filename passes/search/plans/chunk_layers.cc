#include "passes/search/plans/chunk_layers.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace mgc {

int64_t LeastLayers(const StageCosts& costs, int64_t stage, int64_t num_stages) {
  const bool has_embedding = stage == 0 && costs.embedding_ns >= 0;
  const bool has_head = stage + 1 == num_stages && costs.head_ns >= 0;
  return has_embedding || has_head ? 0 : 1;
}

std::vector<int64_t> LayersOfChunks(const std::vector<int64_t>& by_rank, int64_t chunks,
                                    const StageCosts& costs) {
  const auto ranks = static_cast<int64_t>(by_rank.size());
  std::vector<int64_t> layers(static_cast<size_t>(ranks * chunks), 0);
  const auto stages = static_cast<int64_t>(layers.size());
  std::vector<int64_t> ns(layers.size(), 0);
  ns.front() += std::max<int64_t>(costs.embedding_ns, 0);
  ns.back() += std::max<int64_t>(costs.head_ns, 0);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const bool from_last = 2 * rank < ranks;
    for (int64_t n = 0; n < by_rank[static_cast<size_t>(rank)]; ++n) {
      const auto needs_less = [&](int64_t a, int64_t b) {
        const auto rank_of = [&](int64_t stage) {
          const auto s = static_cast<size_t>(stage);
          return std::make_tuple(layers[s] >= LeastLayers(costs, stage, stages), ns[s], layers[s],
                                 from_last ? -stage : stage);
        };
        return rank_of(a) < rank_of(b);
      };
      int64_t least = rank;
      for (int64_t s = rank; s < stages; s += ranks) least = needs_less(s, least) ? s : least;
      ++layers[static_cast<size_t>(least)];
      ns[static_cast<size_t>(least)] += costs.layer_ns;
    }
  }
  return layers;
}

}  // namespace mgc
