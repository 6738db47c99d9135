#include "tools/benchmarks/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"

namespace mgc {
namespace {

constexpr double kPredictedWithin = 0.1;
constexpr double kShortSeconds = 0.1;  // of a step whose milliseconds have decimals
constexpr double kShownShare = 0.003;  // of a step: shares below it are added up

double Rate(const ComparisonResult& result, const Timings& side) {
  return static_cast<double>(result.tokens) / Median(side.seconds);
}

std::string Line(const ComparisonResult& result, const Timings& side) {
  if (!side.missing.empty()) return absl::StrFormat("  %-32s %s\n", side.name, side.missing);
  const auto [least, most] = std::minmax_element(side.seconds.begin(), side.seconds.end());
  const int64_t peak = side.profile.peak_bytes;
  const int digits = Median(side.seconds) < kShortSeconds ? 3 : 0;
  return absl::StrFormat(
      "  %-32s %7.*f ms (%.*f to %.*f), %.0f ms of CPU%s%s\n", side.name, digits,
      Median(side.seconds) * 1e3, digits, *least * 1e3, digits, *most * 1e3,
      Median(side.cpu_seconds) * 1e3,
      result.tokens > 0 ? absl::StrFormat(", %.0f tokens/s", Rate(result, side)) : "",
      peak > 0 ? absl::StrCat(", ", BytesText(peak)) : "");
}

const char* Verdict(const Finding& finding) {
  return finding.ratio.noisy() ? "too noisy" : finding.reached() ? "reached" : "missed";
}

std::string Line(const ComparisonResult& result, const Finding& finding) {
  return absl::StrFormat(
      "  %s: %.1f %% of %s (%.1f to %.1f; at least %.0f %%: %s), %.1f %% by CPU time\n",
      result.sides[static_cast<size_t>(finding.side)].name, 100 * finding.ratio.median,
      result.sides[static_cast<size_t>(finding.peer)].name, 100 * finding.ratio.low,
      100 * finding.ratio.high, 100 * finding.least, Verdict(finding), 100 * finding.cpu_ratio);
}

std::string Line(const ComparisonResult& result, const MemoryClaim& claim, double ratio) {
  return absl::StrFormat("  %s: %.0f %% of the memory of %s (at most %.0f %%: %s)\n",
                         result.sides[static_cast<size_t>(claim.side)].name, 100 * ratio,
                         result.sides[static_cast<size_t>(claim.peer)].name, 100 * claim.most,
                         ratio <= claim.most ? "reached" : "missed");
}

// What the plan said beside what it took; a machine that is busy with more takes longer.
std::string PredictionLine(const Timings& side) {
  const double ratio = side.profile.predicted_seconds / Median(side.seconds);
  return absl::StrFormat(
      "  %s: predicted %.0f ms, %.1f %% of what it took (%s)\n", side.name,
      side.profile.predicted_seconds * 1e3, 100 * ratio,
      std::fabs(ratio - 1) <= kPredictedWithin ? "within 10 %" : "more than 10 % off");
}

// Milliseconds of all cores that every kind of work takes in a step of the sides that tell.
class SharesTable {
 public:
  SharesTable(const BenchReport& report, const ComparisonResult& result) : cores_(report.workers) {
    for (const Timings& side : result.sides) {
      if (!side.profile.shares.empty()) sides_.push_back(&side);
    }
  }

  std::string Text() const {
    if (sides_.empty()) return "";
    std::string text = "\n  ms of a step, all cores\n";
    std::vector<double> small(sides_.size()), rest, whole;
    for (const Timings* side : sides_) whole.push_back(side->profile.seconds * 1e3);
    rest = whole;
    for (const auto& [name, ms] : Rows()) {
      for (size_t s = 0; s < ms.size(); ++s) rest[s] -= ms[s];
      if (std::any_of(ms.begin(), ms.end(), [&](double m) { return m >= Shown(); })) {
        absl::StrAppend(&text, Row(name, ms));
      } else {
        for (size_t s = 0; s < ms.size(); ++s) small[s] += ms[s];
      }
    }
    absl::StrAppend(&text, Row("smaller ones", small), Row("rest: waiting, zeroing", rest),
                    Row("whole step", whole));
    for (const Timings* side : sides_) absl::StrAppend(&text, "    | ", side->name);
    return absl::StrCat(text, "\n");
  }

 private:
  using NamedRow = std::pair<std::string, std::vector<double>>;

  double Shown() const { return kShownShare * sides_[0]->profile.seconds * 1e3; }

  // The first side's largest first.
  std::vector<NamedRow> Rows() const {
    std::map<std::string, std::vector<double>> rows;
    for (size_t s = 0; s < sides_.size(); ++s) {
      for (const WorkShare& share : sides_[s]->profile.shares) {
        std::vector<double>& row = rows[share.name];
        row.resize(sides_.size());
        row[s] = share.seconds / cores_ * 1e3;
      }
    }
    std::vector<NamedRow> sorted(rows.begin(), rows.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const NamedRow& a, const NamedRow& b) { return a.second > b.second; });
    return sorted;
  }

  static std::string Row(const std::string& name, const std::vector<double>& ms) {
    std::string text = absl::StrFormat("    %-26s", name);
    for (const double m : ms) absl::StrAppendFormat(&text, " %9.1f", m);
    return absl::StrCat(text, "\n");
  }

  const double cores_;
  std::vector<const Timings*> sides_;
};

void Write(const ComparisonResult& result, const Timings& side, JsonWriter* json) {
  json->NewLine(4).BeginObject().String("name", side.name);
  if (!side.seconds.empty()) {
    json->Number("median_seconds", Median(side.seconds));
    if (result.tokens > 0) json->Number("tokens_per_second", Rate(result, side));
  }
  json->Key("seconds").BeginArray();
  for (const double seconds : side.seconds) json->Number(seconds);
  json->EndArray().Key("cpu_seconds").BeginArray();
  for (const double seconds : side.cpu_seconds) json->Number(seconds);
  json->EndArray();
  if (!side.missing.empty()) json->String("missing", side.missing);
  const Profile& profile = side.profile;
  if (profile.peak_bytes > 0) json->Integer("peak_bytes", profile.peak_bytes);
  if (profile.predicted_seconds > 0) json->Number("predicted_seconds", profile.predicted_seconds);
  if (!profile.shares.empty()) {
    json->Number("profiled_seconds", profile.seconds).Key("core_seconds").BeginObject();
    for (const WorkShare& share : profile.shares) json->Number(share.name, share.seconds);
    json->EndObject();
  }
  json->EndObject();
}

void Write(const ComparisonResult& result, const Finding& finding, JsonWriter* json) {
  json->NewLine(4).BeginObject();
  json->String("side", result.sides[static_cast<size_t>(finding.side)].name);
  json->String("peer", result.sides[static_cast<size_t>(finding.peer)].name);
  json->Number("ratio", finding.ratio.median).Number("low", finding.ratio.low);
  json->Number("high", finding.ratio.high).Number("at_least", finding.least);
  json->Number("cpu_ratio", finding.cpu_ratio);
  json->String("verdict", Verdict(finding)).EndObject();
}

}  // namespace

std::string ReportText(const BenchReport& report) {
  std::string text = absl::StrFormat("%s, %d layers, %d workers, %s\n", report.model, report.layers,
                                     report.workers, report.instructions);
  for (const ComparisonResult& result : report.comparisons) {
    absl::StrAppend(&text, "\n", result.title, "\n");
    for (const Timings& side : result.sides) absl::StrAppend(&text, Line(result, side));
    for (const Claim& claim : result.claims) {
      if (const auto finding = Judge(result, claim)) absl::StrAppend(&text, Line(result, *finding));
    }
    for (const Timings& side : result.sides) {
      if (side.profile.predicted_seconds > 0) absl::StrAppend(&text, PredictionLine(side));
    }
    for (const MemoryClaim& claim : result.memory_claims) {
      const absl::optional<double> ratio = MemoryRatio(result, claim);
      if (ratio.has_value()) absl::StrAppend(&text, Line(result, claim, *ratio));
    }
    absl::StrAppend(&text, SharesTable(report, result).Text());
  }
  return text;
}

std::string ReportJson(const BenchReport& report) {
  JsonWriter json;
  json.BeginObject().String("model", report.model).Integer("layers", report.layers);
  json.Integer("workers", report.workers).String("instructions", report.instructions);
  json.Key("comparisons").BeginArray();
  for (const ComparisonResult& result : report.comparisons) {
    json.NewLine().BeginObject().String("name", result.name).String("title", result.title);
    json.Integer("tokens", result.tokens).Key("sides").BeginArray();
    for (const Timings& side : result.sides) Write(result, side, &json);
    json.EndArray().Key("findings").BeginArray();
    for (const Claim& claim : result.claims) {
      if (const auto finding = Judge(result, claim)) Write(result, *finding, &json);
    }
    json.EndArray().EndObject();
  }
  return std::move(json.EndArray().EndObject()).Finish();
}

}  // namespace mgc
