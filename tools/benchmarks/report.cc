#include "tools/benchmarks/report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json_writer.h"

namespace mgc {
namespace {

constexpr double kShownShare = 0.003;  // of a step: shares below it are added up

double Rate(const TrainingReport& report, const Timings& timings) {
  return static_cast<double>(report.tokens) / Median(timings.seconds);
}

std::string Line(const TrainingReport& report, const Timings& timings) {
  const auto [least, most] = std::minmax_element(timings.seconds.begin(), timings.seconds.end());
  return absl::StrFormat("%-26s %7.0f ms (%.0f to %.0f), %.0f ms of CPU, %.0f tokens/s\n",
                         timings.name, Median(timings.seconds) * 1e3, *least * 1e3, *most * 1e3,
                         Median(timings.cpu_seconds) * 1e3, Rate(report, timings));
}

std::string Verdict(bool reached) { return reached ? "reached" : "missed"; }

// Milliseconds of all cores that every kind of work takes in a step of either side.
std::string SharesTable(const TrainingReport& report) {
  std::map<std::string, std::pair<double, double>> rows;
  const double cores = report.workers;
  for (const WorkShare& s : report.one_rank.shares) rows[s.name].first = s.seconds / cores * 1e3;
  for (const WorkShare& s : report.eight_ranks.shares) {
    rows[s.name].second = s.seconds / cores * 1e3;
  }
  std::vector<std::pair<std::string, std::pair<double, double>>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text =
      absl::StrFormat("%-28s %9s %9s\n", "ms of a step, all cores", "one rank", "eight");
  std::pair<double, double> small, total;
  for (const auto& [name, ms] : sorted) {
    total.first += ms.first;
    total.second += ms.second;
    if (std::max(ms.first, ms.second) < kShownShare * report.one_rank.shares_seconds * 1e3) {
      small.first += ms.first;
      small.second += ms.second;
    } else {
      absl::StrAppendFormat(&text, "  %-26s %9.1f %9.1f\n", name, ms.first, ms.second);
    }
  }
  absl::StrAppendFormat(&text, "  %-26s %9.1f %9.1f\n", "smaller ones", small.first, small.second);
  const std::pair<double, double> step = {report.one_rank.shares_seconds * 1e3,
                                          report.eight_ranks.shares_seconds * 1e3};
  absl::StrAppendFormat(&text, "  %-26s %9.1f %9.1f\n", "rest: waiting, zeroing",
                        step.first - total.first, step.second - total.second);
  absl::StrAppendFormat(&text, "  %-26s %9.1f %9.1f\n", "whole step", step.first, step.second);
  return text;
}

void WriteTimings(const TrainingReport& report, const char* key, const Timings& timings,
                  JsonWriter* json) {
  json->NewLine().Key(key).BeginObject().String("name", timings.name);
  json->Key("median_seconds").Number(Median(timings.seconds));
  json->Key("tokens_per_second").Number(Rate(report, timings));
  json->Key("seconds").BeginArray();
  for (double seconds : timings.seconds) json->Number(seconds);
  json->EndArray().Key("cpu_seconds").BeginArray();
  for (double seconds : timings.cpu_seconds) json->Number(seconds);
  json->EndArray();
  if (timings.peak_bytes > 0) json->Integer("peak_bytes", timings.peak_bytes);
  if (!timings.shares.empty()) {
    json->Key("traced_step_seconds").Number(timings.shares_seconds);
    json->Key("core_seconds").BeginObject();
    for (const WorkShare& s : timings.shares) json->Key(s.name).Number(s.seconds);
    json->EndObject();
  }
  json->EndObject();
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double PairedRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    ratios.push_back(a[i] / b[i]);
  }
  return Median(std::move(ratios));
}

std::string ReportText(const TrainingReport& r) {
  const double gflops = r.product_flops / 1e9 / Median(r.products.seconds);
  std::string text = absl::StrFormat("%s, %d layers, f32, %d tokens a step, %d workers\n", r.model,
                                     r.layers, r.tokens, r.workers);
  absl::StrAppend(&text, Line(r, r.products), Line(r, r.one_rank));
  absl::StrAppendFormat(&text,
                        "  oneDNN does the products at %.0f GFLOP/s; training reaches %.1f %% of "
                        "what they allow (at least %.0f %%: %s)\n",
                        gflops, 100 * r.of_products(), 100 * kLeastOfProducts,
                        Verdict(r.of_products() >= kLeastOfProducts));
  if (!r.eight_ranks.seconds.empty()) {
    absl::StrAppend(&text, Line(r, r.eight_ranks));
    absl::StrAppendFormat(
        &text, "  eight ranks lose %.1f %% (at most %.0f %%: %s), %.1f %% by CPU time\n",
        100 * r.loss(), 100 * kMostLoss, Verdict(r.loss() <= kMostLoss),
        100 - 100 * PairedRatio(r.one_rank.cpu_seconds, r.eight_ranks.cpu_seconds));
  }
  absl::StrAppend(&text, "\n", SharesTable(r));
  return text;
}

std::string ReportJson(const TrainingReport& r) {
  JsonWriter json;
  json.BeginObject().String("model", r.model).Integer("layers", r.layers);
  json.Integer("tokens", r.tokens).Integer("workers", r.workers);
  json.Key("product_flops").Number(r.product_flops);
  json.Key("of_products").Number(r.of_products());
  WriteTimings(r, "products", r.products, &json);
  WriteTimings(r, "one_rank", r.one_rank, &json);
  if (!r.eight_ranks.seconds.empty()) {
    json.Key("loss").Number(r.loss());
    WriteTimings(r, "eight_ranks", r.eight_ranks, &json);
  }
  return std::move(json.EndObject()).Finish();
}

}  // namespace mgc
