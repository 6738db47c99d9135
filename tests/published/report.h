// Predictions beside what was published, as docs/planning.md shows them.

#ifndef MGC_TESTS_PUBLISHED_REPORT_H_
#define MGC_TESTS_PUBLISHED_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/published/predict.h"

namespace mgc {

// A row's line of the table.
std::string LineOf(const PredictedRow& row);

// The table, those that are farthest off first; errors by paper; bytes of states; and what a rate
// of products that is fitted to one paper's rows says of the other's. Errors of the prediction.
absl::StatusOr<std::string> ReportText(std::vector<PredictedRow> rows);

// All published rows. Errors of the compiler, with the row.
absl::StatusOr<std::vector<PredictedRow>> PredictAll();

}  // namespace mgc

#endif  // MGC_TESTS_PUBLISHED_REPORT_H_
