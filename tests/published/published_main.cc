// Prints what docs/planning.md shows of published training runs; with --search, of what a search
// chooses in their place.

#include <iostream>
#include <string>

#include "graph/base/status.h"
#include "tests/published/report.h"
#include "tests/published/search_rows.h"

namespace mgc {
namespace {

absl::StatusOr<std::string> Report(bool search) {
  if (search) return SearchedText();
  MGC_ASSIGN_OR_RETURN(std::vector<PredictedRow> rows, PredictAll());
  return ReportText(std::move(rows));
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) {
  const bool search = argc == 2 && std::string(argv[1]) == "--search";
  const absl::StatusOr<std::string> report = mgc::Report(search);
  if (!report.ok()) {
    std::cerr << "error: " << report.status().message() << "\n";
    return 1;
  }
  std::cout << *report;
  return 0;
}
