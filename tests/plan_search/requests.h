// Searches over presets, for tests.

#ifndef MGC_TESTS_PLAN_SEARCH_REQUESTS_H_
#define MGC_TESTS_PLAN_SEARCH_REQUESTS_H_

#include <cstdint>
#include <string>

#include "passes/search/plans/search_plans.h"

namespace mgc {

// A search for a preset on a preset of machines, with nothing fixed.
SearchRequest RequestFor(const std::string& model, const std::string& machine, int64_t world_size,
                         int64_t global_batch_size);

}  // namespace mgc

#endif  // MGC_TESTS_PLAN_SEARCH_REQUESTS_H_
