#include "tools/benchmarks/layouts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "tools/benchmarks/training.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {
namespace {

constexpr char kPreset[] = "gpt2-tiny";
constexpr int64_t kTimesAsWide = 4;
constexpr int64_t kHeads = 8;  // so that tp 8 can cut them
constexpr int64_t kSequences = 16;
constexpr int64_t kCalibratedWords = 4096;
constexpr char kEveryLayout[] = "--global-batch-size 16";

constexpr absl::string_view kLayouts[] = {
    "--world-size 2 --micro-batch-size 8",
    "--world-size 2 --tp 2 --micro-batch-size 16",
    "--world-size 2 --pp 2 --micro-batch-size 2",
    "--world-size 2 --cp 2 --micro-batch-size 4 --recompute full",
    "--world-size 4 --micro-batch-size 4 --zero 2",
    "--world-size 4 --tp 2 --micro-batch-size 2 --sequence-parallel --zero 1",
    "--world-size 4 --tp 2 --pp 2 --schedule gpipe --micro-batch-size 4",
    "--world-size 4 --pp 2 --schedule interleaved --vp 2 --micro-batch-size 1",
    "--world-size 8 --micro-batch-size 2",
    "--world-size 8 --micro-batch-size 1 --zero 3",
    "--world-size 8 --tp 2 --pp 2 --micro-batch-size 2 --sequence-parallel",
    "--world-size 8 --tp 8 --micro-batch-size 4",
    "--world-size 8 --tp 8 --micro-batch-size 1 --recompute full",
    "--world-size 8 --tp 2 --cp 4 --micro-batch-size 1 --recompute full",
    "--world-size 8 --cp 2 --pp 4 --micro-batch-size 1 --recompute selective",
};

// The words are this file's, and right.
ParallelConfig ConfigOfWords(absl::string_view words, int64_t seq_length) {
  Flags parser({"mgc-compile", "", "", {}, ""});
  ParallelFlags flags;
  AddMeshFlags(&parser, &flags);
  AddScheduleFlags(&parser, &flags);
  AddTrainingFlags(&parser, &flags);
  const ParsedFlags parsed =
      parser.Parse(absl::StrSplit(absl::StrCat(words, " ", kEveryLayout), ' '));
  MGC_CHECK(parsed.errors.empty()) << words;
  return ConfigOf(flags, seq_length);
}

// Of the fastest of some steps, in order of turns.
PredictedTime Beside(double predicted, const std::vector<double>& seconds) {
  const size_t odd = seconds.size() > 1 ? 1 : 0;
  double fastest[] = {seconds[0], seconds[odd]};  // of even turns, of odd ones
  for (size_t turn = 0; turn < seconds.size(); ++turn) {
    fastest[turn % 2] = std::min(fastest[turn % 2], seconds[turn]);
  }
  const auto [less, more] = std::minmax(fastest[0], fastest[1]);
  return {predicted, less, more - less};
}

// One of the two ways to measure a step, of all layouts.
using TimeOfSide = PredictedTime(const Timings& side, int workers);

std::vector<PredictedTime> TimesOf(const LayoutReport& report, TimeOfSide* time_of) {
  std::vector<PredictedTime> times;
  for (const Timings& side : report.result.sides) times.push_back(time_of(side, report.workers));
  return times;
}

std::vector<const Timings*> FastestFirst(const LayoutReport& report) {
  std::vector<const Timings*> sides;
  for (const Timings& side : report.result.sides) sides.push_back(&side);
  std::stable_sort(sides.begin(), sides.end(), [&](const Timings* a, const Timings* b) {
    return StepTimeOf(*a, report.workers).measured < StepTimeOf(*b, report.workers).measured;
  });
  return sides;
}

std::string Line(const Timings& side, int workers) {
  const PredictedTime time = StepTimeOf(side, workers), busy = BusyTimeOf(side, workers);
  return absl::StrFormat("  %9.1f  %8.1f  %6.1f %%  %5.1f %%  %8.1f  %6.1f %%  %s\n",
                         time.predicted * 1e3, time.measured * 1e3, 100 * time.ratio(),
                         100 * time.spread / time.measured, busy.measured * 1e3, 100 * busy.ratio(),
                         side.name);
}

std::string Summary(absl::string_view by, const std::vector<PredictedTime>& times) {
  const absl::optional<double> correlation = RankCorrelation(times);
  const PredictionError error = ErrorOf(times);
  return absl::StrFormat(
      "  %s: rank correlation %s, %d of %d pairs tied; off by %.1f %% on average, at worst %.1f "
      "%%\n",
      by, correlation ? absl::StrFormat("%.3f", *correlation) : "unknown", TiedPairs(times),
      times.size() * (times.size() - 1) / 2, 100 * error.mean, 100 * error.worst);
}

void Write(absl::string_view key, const std::vector<PredictedTime>& times, JsonWriter* json) {
  json->NewLine(2).Key(key).BeginObject().Key("rank_correlation");
  const absl::optional<double> correlation = RankCorrelation(times);
  correlation ? json->Number(*correlation) : json->Null();
  json->Integer("tied_pairs", TiedPairs(times)).Number("mean_error", ErrorOf(times).mean);
  json->Number("worst_error", ErrorOf(times).worst).EndObject();
}

void Write(const Timings& side, int workers, JsonWriter* json) {
  const PredictedTime time = StepTimeOf(side, workers), busy = BusyTimeOf(side, workers);
  json->NewLine(4).BeginObject().String("flags", side.name);
  json->Number("predicted_seconds", time.predicted).Number("measured_seconds", time.measured);
  json->Number("spread_seconds", time.spread).Number("busy_seconds", busy.measured);
  json->Key("seconds").BeginArray();
  for (const double seconds : side.seconds) json->Number(seconds);
  json->EndArray().Key("cpu_seconds").BeginArray();
  for (const double seconds : side.cpu_seconds) json->Number(seconds);
  json->EndArray().EndObject();
}

}  // namespace

absl::StatusOr<LayoutModel> DefaultLayoutModel() {
  LayoutModel model;
  model.name = absl::StrCat(kPreset, ", ", kTimesAsWide, " times as wide");
  MGC_ASSIGN_OR_RETURN(model.config, LoadModelPreset(kPreset));
  model.config.hidden *= kTimesAsWide;
  model.config.ffn *= kTimesAsWide;
  model.config.heads = model.config.kv_heads = kHeads;
  model.config.head_dim = model.config.hidden / kHeads;
  return model;
}

absl::StatusOr<CalibrationSetting> LayoutCalibration() {
  MGC_ASSIGN_OR_RETURN(CalibrationSetting setting, DefaultCalibration());
  setting.types = {DType::kF32};
  setting.sequences /= 2;
  setting.gpt2.vocab = kCalibratedWords;
  return setting;
}

Comparison LayoutComparison(const BenchSetting& setting) {
  Comparison comparison;
  const int64_t length = setting.model.seq_length;
  comparison.name = "layouts";
  comparison.title = absl::StrCat("layouts, ", kSequences, " x ", length, " tokens a step");
  comparison.tokens = kSequences * length;
  for (const absl::string_view words : kLayouts) {
    const ParallelConfig parallel = ConfigOfWords(words, length);
    comparison.sides.push_back(
        {std::string(words), [=]() -> absl::StatusOr<std::unique_ptr<BenchSide>> {
           return TrainingSteps::Create(setting.model, parallel, setting.machine, setting.workers);
         }});
  }
  return comparison;
}

PredictedTime StepTimeOf(const Timings& side, int /*workers*/) {
  return Beside(side.profile.predicted_seconds, side.seconds);
}

PredictedTime BusyTimeOf(const Timings& side, int workers) {
  std::vector<double> seconds = side.cpu_seconds;
  for (double& s : seconds) s /= workers;
  return Beside(side.profile.predicted_seconds, seconds);
}

std::string LayoutsText(const LayoutReport& report) {
  std::string text =
      absl::StrFormat("%s, %d layers, %d workers, %s\n\n%s\n", report.model, report.layers,
                      report.workers, report.instructions, report.result.title);
  absl::StrAppend(&text, "  predicted  measured     ratio   spread    by CPU     ratio  flags\n");
  for (const Timings* side : FastestFirst(report)) {
    absl::StrAppend(&text, Line(*side, report.workers));
  }
  return absl::StrCat(text, Summary("measured", TimesOf(report, StepTimeOf)),
                      Summary("by CPU time", TimesOf(report, BusyTimeOf)));
}

std::string LayoutsJson(const LayoutReport& report) {
  JsonWriter json;
  json.BeginObject().String("model", report.model).Integer("layers", report.layers);
  json.Integer("workers", report.workers).String("instructions", report.instructions);
  json.Integer("tokens", report.result.tokens).Key("layouts").BeginArray();
  for (const Timings* side : FastestFirst(report)) Write(*side, report.workers, &json);
  json.EndArray();
  Write("measured", TimesOf(report, StepTimeOf), &json);
  Write("by_cpu_time", TimesOf(report, BusyTimeOf), &json);
  return std::move(json.EndObject()).Finish();
}

}  // namespace mgc
