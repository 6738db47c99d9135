#include "tests/published/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "tests/published/rows.h"

namespace mgc {
namespace {

std::string PercentText(double share) { return absl::StrFormat("%+.1f %%", 100 * share); }

std::string RangeText(const PredictedRow& row) {
  const std::string least = absl::StrFormat("%.0f", row.least);
  const std::string most = absl::StrFormat("%.0f", row.most);
  return least == most ? least : absl::StrCat(least, " to ", most);
}

std::string LayoutText(const PublishedRow& row) {
  std::string text = absl::StrCat("tp ", row.tp, ", pp ", row.pp);
  if (row.chunks.size() > 1) {
    absl::StrAppend(&text, " × ", row.chunks.front(), " or ", row.chunks.back());
  } else if (row.chunks.front() > 1) {
    absl::StrAppend(&text, " × ", row.chunks.front());
  }
  if (row.cp > 1) absl::StrAppend(&text, ", cp ", row.cp);
  absl::StrAppend(&text, ", dp ", row.dp, "; ", row.micro_batch, " of ", row.global_batch);
  if (row.sequence_parallel) absl::StrAppend(&text, ", sp");
  if (row.recompute != RecomputeKind::kNone) {
    absl::StrAppend(&text, ", ", std::string(ToString(row.recompute)));
  }
  return text;
}

std::vector<PredictedRow> Of(const std::vector<PredictedRow>& rows, const std::string& paper) {
  std::vector<PredictedRow> of;
  for (const PredictedRow& row : rows) {
    if (row.row.paper == paper) of.push_back(row);
  }
  return of;
}

std::string ErrorsText(const std::vector<PredictedRow>& rows) {
  return absl::StrFormat("%.1f %% | %.1f %%", 100 * MeanError(rows), 100 * WorstError(rows));
}

std::string PapersText(const std::vector<PredictedRow>& rows) {
  std::string text = "| rows | mean error | worst |\n|---|---|---|\n";
  for (const char* paper : {kSc21, kSc21Zero, kSequence, kLlama3, kMtNlg}) {
    absl::StrAppend(&text, "| ", paper, " | ", ErrorsText(Of(rows, paper)), " |\n");
  }
  return absl::StrCat(text, "| all | ", ErrorsText(rows), " |\n");
}

std::string StatesText(const std::vector<PredictedRow>& rows) {
  std::string text = "| model | state, published | of the plan | error |\n|---|---|---|---|\n";
  for (const PredictedRow& row : rows) {
    if (row.row.state_gib == 0 || row.row.recompute == RecomputeKind::kFull) continue;
    absl::StrAppendFormat(&text, "| %s | %.2f GiB | %.2f GiB | %s |\n", row.row.model,
                          row.row.state_gib, row.state_gib, PercentText(row.state_error()));
  }
  return text;
}

// Fitted to one paper's rows, judged on the other's and on all.
absl::StatusOr<std::string> FitText(const std::vector<PredictedRow>& fitted,
                                    const std::vector<PredictedRow>& judged,
                                    const std::vector<PredictedRow>& all) {
  MGC_ASSIGN_OR_RETURN(const double factor, FitProducts(fitted));
  MGC_ASSIGN_OR_RETURN(const std::vector<PredictedRow> of_judged, WithProducts(judged, factor));
  MGC_ASSIGN_OR_RETURN(const std::vector<PredictedRow> of_all, WithProducts(all, factor));
  return absl::StrFormat("| %s | %.2f | %s | %s | %s |\n", fitted.front().row.paper, factor,
                         judged.front().row.paper, ErrorsText(of_judged), ErrorsText(of_all));
}

}  // namespace

std::string LineOf(const PredictedRow& row) {
  return absl::StrFormat("| %s | %s | %d | %s | %.0f | %s | %s |\n", row.row.paper, row.row.model,
                         row.row.gpus(), LayoutText(row.row), MeasuredTflops(row.row),
                         RangeText(row), PercentText(row.error()));
}

absl::StatusOr<std::string> ReportText(std::vector<PredictedRow> rows) {
  std::string text =
      "| paper | model | GPUs | layout | published | predicted | error |\n"
      "|---|---|---|---|---|---|---|\n";
  const std::string papers = PapersText(rows), states = StatesText(rows);
  const std::vector<PredictedRow> sc21 = Of(rows, kSc21), sequence = Of(rows, kSequence);
  MGC_ASSIGN_OR_RETURN(std::string fits, FitText(sc21, sequence, rows));
  MGC_ASSIGN_OR_RETURN(const std::string back, FitText(sequence, sc21, rows));
  std::stable_sort(rows.begin(), rows.end(), [](const PredictedRow& a, const PredictedRow& b) {
    return std::abs(a.error()) > std::abs(b.error());
  });
  for (const PredictedRow& row : rows) absl::StrAppend(&text, LineOf(row));
  absl::StrAppend(
      &text, "\n", papers, "\n", states, "\n",
      "| fitted to | products, times as fast | judged on | mean error | worst | mean of "
      "all | worst of all |\n|---|---|---|---|---|---|---|\n",
      fits, back);
  return text;
}

absl::StatusOr<std::vector<PredictedRow>> PredictAll() {
  std::vector<PredictedRow> rows;
  for (const PublishedRow& row : PublishedRows()) {
    absl::StatusOr<PredictedRow> predicted = PredictRow(row);
    if (!predicted.ok()) {
      return absl::Status(predicted.status().code(), absl::StrCat(row.paper, " ", row.model, ": ",
                                                                  predicted.status().message()));
    }
    rows.push_back(*std::move(predicted));
  }
  return rows;
}

}  // namespace mgc
