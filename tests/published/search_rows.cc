#include "tests/published/search_rows.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/types/machine.h"
#include "passes/config/config_flags.h"
#include "tests/published/predict.h"

namespace mgc {
namespace {

absl::StatusOr<SearchRequest> RequestFor(const PublishedRow& row) {
  MGC_ASSIGN_OR_RETURN(const ModelConfig model, ConfigOf(row));
  SearchRequest request;
  request.options.parallel = LayoutOf(row, row.chunks.front());
  request.options.parallel.recompute = RecomputeKind::kNone;
  MGC_ASSIGN_OR_RETURN(request.options.machine, FindMachinePreset(row.machine));
  request.dims = DimsOf(model);
  request.build = [model](const ParallelConfig& of) {
    return BuildModel(model, of.micro_batch_size * DataParallelSize(of), of.seq_length);
  };
  return request;
}

absl::StatusOr<FoundPlan> AuthorsPlan(const SearchRequest& request, const PublishedRow& row) {
  FoundPlan fastest;
  for (const int64_t chunks : row.chunks) {
    Plan plan;
    MGC_ASSIGN_OR_RETURN(FoundPlan made, MeasureFound(request, LayoutOf(row, chunks), &plan));
    if (fastest.step_ns == 0 || made.step_ns < fastest.step_ns) fastest = std::move(made);
  }
  return fastest;
}

double GainOf(const SearchedRow& row) {
  return static_cast<double>(row.authors.step_ns) / static_cast<double>(row.found.step_ns) - 1;
}

std::string SecondsText(const FoundPlan& plan) {
  return absl::StrFormat("%.2f s", static_cast<double>(plan.step_ns) / 1e9);
}

// A table's cells end at bars, which layout strings have.
std::string InTable(const std::string& flags) { return absl::StrReplaceAll(flags, {{"|", "\\|"}}); }

std::string LineOf(const SearchedRow& row) {
  return absl::StrCat("| ", row.row.paper, " | ", row.row.model, " | ", row.row.gpus(), " | ",
                      row.row.global_batch, " | `", FlagsText(row.authors.config), "` | ",
                      SecondsText(row.authors), row.authors_fit ? "" : ", does not fit", " | `",
                      InTable(FlagsText(row.found.config)), "` | ", SecondsText(row.found), " | ",
                      absl::StrFormat("%+.1f %%", 100 * GainOf(row)), " |\n");
}

}  // namespace

absl::StatusOr<SearchedRow> SearchRow(const PublishedRow& row) {
  MGC_ASSIGN_OR_RETURN(const SearchRequest request, RequestFor(row));
  SearchedRow searched;
  searched.row = row;
  MGC_ASSIGN_OR_RETURN(searched.authors, AuthorsPlan(request, row));
  searched.authors_fit = searched.authors.peak_bytes <= request.options.machine.memory;
  MGC_ASSIGN_OR_RETURN(const FoundPlans found, SearchPlans(request));
  searched.found = found.ranked.front();
  return searched;
}

absl::StatusOr<std::string> SearchedText() {
  std::vector<SearchedRow> rows;
  std::set<std::tuple<std::string, int64_t, int64_t, int64_t>> known;
  for (const PublishedRow& row : PublishedRows()) {
    if (!known.insert({row.model, row.gpus(), row.global_batch, row.seq}).second) continue;
    absl::StatusOr<SearchedRow> searched = SearchRow(row);
    if (!searched.ok()) {
      return absl::Status(searched.status().code(), absl::StrCat(row.paper, " ", row.model, ": ",
                                                                 searched.status().message()));
    }
    rows.push_back(*std::move(searched));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const SearchedRow& a, const SearchedRow& b) {
    return GainOf(a) > GainOf(b);
  });
  std::string text =
      "| paper | model | GPUs | batch | authors | step | found | step | authors' takes longer by "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const SearchedRow& row : rows) absl::StrAppend(&text, LineOf(row));
  return text;
}

}  // namespace mgc
