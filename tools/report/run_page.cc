#include "tools/report/run_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "tools/report/curves.h"
#include "tools/views/page/markup.h"
#include "tools/views/page/page.h"
#include "tools/views/page/page_parts.h"

namespace mgc {
namespace {

constexpr size_t kMostRows = 32;     // of a timeline
constexpr double kTimelineRow = 14;  // points
constexpr double kMebibyte = 1 << 20;

// The fact is not shown where its number is NaN.
void AddFact(absl::string_view fact, absl::string_view what, double value, absl::string_view text,
             Markup* page) {
  if (std::isnan(value)) return;
  page->Open("tr", {{"data-fact", std::string(fact)}});
  page->Element("td", {{"class", "words"}}, what);
  page->Element("td", {{"data-value", JsonNumber(value)}}, text).Close().NewLine();
}

double LastOf(const LogSeries& series) {
  return series.empty() ? std::numeric_limits<double>::quiet_NaN() : series.back().value;
}

double LowestOf(const LogSeries& series) {
  double lowest = std::numeric_limits<double>::quiet_NaN();
  for (const LogPoint& point : series) lowest = std::fmin(lowest, point.value);
  return lowest;
}

double HighestOf(const LogSeries& series) {
  double highest = std::numeric_limits<double>::quiet_NaN();
  for (const LogPoint& point : series) highest = std::fmax(highest, point.value);
  return highest;
}

double SumOf(const LogSeries& series) {
  double sum = 0;
  for (const LogPoint& point : series) sum += point.value;
  return series.empty() ? std::numeric_limits<double>::quiet_NaN() : sum;
}

void AddTimes(const RunLog& log, Markup* page) {
  const double ms = MedianOf(log.Of("ms"), log.warm_up);
  const double predicted = MedianOf(log.Of("predicted_ms"), log.warm_up);
  AddFact("ms", "median step, without warm-up", ms, absl::StrFormat("%.1f ms", ms), page);
  AddFact("predicted_ms", "predicted by the plan", predicted, absl::StrFormat("%.1f ms", predicted),
          page);
  if (predicted > 0) {
    AddFact("ratio", "measured / predicted", ms / predicted,
            absl::StrFormat("%.2f", ms / predicted), page);
  }
  const double rate = MedianOf(log.Of("tokens_per_second"), log.warm_up);
  AddFact("tokens_per_second", "median tokens/s", rate, absl::StrFormat("%.0f", rate), page);
  const double flops = MedianOf(log.Of("flops_per_second"), log.warm_up);
  AddFact("flops_per_second", "median TFLOP/s", flops, absl::StrFormat("%.4f", flops / 1e12), page);
  const double share = MedianOf(log.Of("peak_share"), log.warm_up);
  AddFact("peak_share", "of the machine's peak", share, absl::StrFormat("%.1f%%", share * 100),
          page);
}

void AddFacts(const RunLog& log, Markup* page) {
  page->Open("table", {{"id", "facts"}}).NewLine();
  const LogSeries& losses = log.Of("loss");
  AddFact("steps", "steps in the file", static_cast<double>(log.steps), absl::StrCat(log.steps),
          page);
  AddFact("last_step", "last step", static_cast<double>(losses.back().step),
          absl::StrCat(losses.back().step), page);
  AddFact("loss", "last loss", LastOf(losses), absl::StrFormat("%.4f", LastOf(losses)), page);
  const double eval = LowestOf(log.Of("eval_loss"));
  AddFact("eval_loss", "lowest loss of an evaluation", eval, absl::StrFormat("%.4f", eval), page);
  AddFact("left_out", "steps left out", static_cast<double>(log.left_out),
          absl::StrCat(log.left_out), page);
  AddTimes(log, page);
  const double bytes = HighestOf(log.Of("peak_bytes"));
  AddFact("peak_bytes", "peak memory of a rank", bytes,
          BytesText(std::isnan(bytes) ? 0 : static_cast<int64_t>(bytes)), page);
  for (const auto& [key, what] : {std::make_pair("data_wait_ms", "waits for data"),
                                  std::make_pair("checkpoint_stall_ms", "waits for checkpoints")}) {
    const double sum = SumOf(log.Of(key));
    AddFact(key, what, sum, absl::StrFormat("%.1f ms", sum), page);
  }
  page->Close().NewLine();
}

void AddAllCurves(const RunLog& log, Markup* page) {
  CurvePlot losses = {"Loss", {{"loss", "forward"}, {"eval_loss", "sent"}}, ""};
  for (const auto& [key, series] : log.series) {
    if (absl::StartsWith(key, "other_losses.")) losses.curves.push_back({key, "prepare"});
  }
  const CurvePlot plots[] = {
      losses,
      {"Gradient norm", {{"grad_norm", "backward"}}, ""},
      {"Learning rate", {{"lr", "update"}}, ""},
      {"Loss scale", {{"loss_scale", "update"}}, ""},
      {"Step time: measured against predicted",
       {{"ms", "forward"}, {"predicted_ms", "sent"}},
       "ms"},
      {"Tokens a second", {{"tokens_per_second", "update"}}, ""},
      {"TFLOP/s", {{"flops_per_second", "update"}}, "", 1e-12},
      {"Share of the machine's peak", {{"peak_share", "update"}}, "%", 100},
      {"Peak memory of a rank", {{"peak_bytes", "params"}}, "MiB", 1 / kMebibyte},
      {"Waits", {{"data_wait_ms", "received"}, {"checkpoint_stall_ms", "prepare"}}, "ms"},
  };
  page->Element("h2", {}, "Along the steps").NewLine();
  for (const CurvePlot& plot : plots) AddCurves(plot, log, page);
}

// The colour of a bar, as in the plan's own pictures.
const char* LookOf(const LogBar& bar) {
  if (bar.category == "collective") return "collective";
  if (bar.category == "transfer") return absl::StrContains(bar.name, "SEND") ? "sent" : "received";
  if (absl::StrContains(bar.name, "F")) return "forward";
  if (absl::StrContains(bar.name, "B")) return "backward";
  return absl::StrContains(bar.name, "P") ? "prepare" : "update";
}

void AddRow(const LogRow& row, double y, double us, Markup* page) {
  for (const LogBar& bar : row.bars) {
    page->Open("rect",
               {{"class", absl::StrCat("bar ", LookOf(bar))},
                {"x", absl::StrFormat("%.1f", bar.begin_us / us * kTimeWidth)},
                {"y", absl::StrFormat("%.1f", y)},
                {"width", absl::StrFormat("%.1f", (bar.end_us - bar.begin_us) / us * kTimeWidth)},
                {"height", absl::StrFormat("%.1f", kTimelineRow - 2)},
                {"data-us", absl::StrFormat("%.3f", bar.begin_us)}});
    page->Element(
        "title", {},
        absl::StrFormat("%s: %s, %.3f ms", row.name, bar.name, (bar.end_us - bar.begin_us) / 1e3));
    page->Close().NewLine();
  }
}

// Rows of one kind, along their own time.
void AddRows(const std::vector<LogRow>& rows, bool predicted, Markup* page) {
  std::vector<const LogRow*> drawn;
  double us = 0;
  for (const LogRow& row : rows) {
    if (row.predicted != predicted || row.bars.empty() || drawn.size() == kMostRows) continue;
    drawn.push_back(&row);
    for (const LogBar& bar : row.bars) us = std::max(us, bar.end_us);
  }
  if (drawn.empty() || us <= 0) return;
  page->Element("h3", {},
                absl::StrFormat("%s: %.3f ms", predicted ? "Predicted" : "Measured", us / 1e3));
  const double height = kTimelineRow * static_cast<double>(drawn.size());
  page->NewLine().Open("svg", {{"class", predicted ? "predicted" : "measured"},
                               {"xmlns", "http://www.w3.org/2000/svg"},
                               {"viewBox", absl::StrFormat("0 0 %d %.0f", kTimeWidth, height)},
                               {"preserveAspectRatio", "none"},
                               {"width", "100%"},
                               {"height", absl::StrFormat("%.0f", height)}});
  page->NewLine();
  for (size_t i = 0; i < drawn.size(); ++i) {
    AddRow(*drawn[i], kTimelineRow * static_cast<double>(i), us, page);
  }
  page->Close().NewLine();
}

void AddTimeline(const std::vector<LogRow>& rows, Markup* page) {
  if (rows.empty()) return;
  page->Element("h2", {}, "The last step of the timeline").NewLine();
  page->Element("p", {},
                absl::StrCat("For each rank what it computes above what it communicates; of more "
                             "than ",
                             kMostRows, " rows the first."));
  page->NewLine();
  AddRows(rows, /*predicted=*/false, page);
  AddRows(rows, /*predicted=*/true, page);
}

}  // namespace

absl::StatusOr<std::string> RunPage(const RunParts& run) {
  Markup page;
  page.Open("html", {{"lang", "en"}}).NewLine();
  AddHead(absl::StrCat(run.name, " - mgc run"), &page);
  page.Open("body").NewLine();
  page.Element("h1", {}, run.name).NewLine();
  AddFacts(run.log, &page);
  AddAllCurves(run.log, &page);
  AddTimeline(run.timeline, &page);
  if (run.plan != nullptr) MGC_RETURN_IF_ERROR(AddPlan(*run.plan, &page));
  page.Close().NewLine().Close();
  return std::move(page).Finish();
}

}  // namespace mgc
