// What a search chooses for the models, GPUs and batches of published runs, beside the authors'
// layouts: both as plans of ours, with fused attention and our own recomputation.

#ifndef MGC_TESTS_PUBLISHED_SEARCH_ROWS_H_
#define MGC_TESTS_PUBLISHED_SEARCH_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/search/plans/search_plans.h"
#include "tests/published/rows.h"

namespace mgc {

struct SearchedRow {
  PublishedRow row;
  FoundPlan authors;  // of the chunks that the paper leaves open the fastest
  FoundPlan found;
  bool authors_fit = true;
};

// Errors of the compiler and of the search.
absl::StatusOr<SearchedRow> SearchRow(const PublishedRow& row);

// A table, as docs/planning.md shows it, of one row for each model, number of GPUs and batch, where
// the search gains most first. Errors likewise, with the row.
absl::StatusOr<std::string> SearchedText();

}  // namespace mgc

#endif  // MGC_TESTS_PUBLISHED_SEARCH_ROWS_H_
