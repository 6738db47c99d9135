// Prints what docs/planning.md shows of published training runs.

#include <iostream>
#include <string>

#include "graph/base/status.h"
#include "tests/published/report.h"

namespace mgc {
namespace {

absl::StatusOr<std::string> Report() {
  MGC_ASSIGN_OR_RETURN(std::vector<PredictedRow> rows, PredictAll());
  return ReportText(std::move(rows));
}

}  // namespace
}  // namespace mgc

int main() {
  const absl::StatusOr<std::string> report = mgc::Report();
  if (!report.ok()) {
    std::cerr << "error: " << report.status().message() << "\n";
    return 1;
  }
  std::cout << *report;
  return 0;
}
