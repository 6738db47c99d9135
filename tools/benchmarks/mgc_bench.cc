// mgc-bench: speed beside a peer in the same run, and what compiling may cost.

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/model_config.h"
#include "graph/base/status.h"
#include "runtime/run/host.h"
#include "tools/benchmarks/limits.h"
#include "tools/benchmarks/products.h"
#include "tools/benchmarks/report.h"
#include "tools/benchmarks/training.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-bench";
constexpr int64_t kSequences = 4;
constexpr int64_t kSequenceLength = 256;
constexpr int64_t kLimitRepetitions = 3;
constexpr int64_t kTrainingRepetitions = 7;

struct BenchFlags {
  bool limits = false;
  bool one_rank_only = false;
  bool json = false;
  absl::optional<int64_t> layers, repetitions, workers;
};

CommandText About() {
  return {kCommand,
          "",
          "measure training beside its matrix products, or the compiler's limits",
          {"mgc-bench", "mgc-bench --limits", "mgc-bench --one-rank --repetitions 3 --json"},
          "Without --limits: gpt2-124m in f32, 4 sequences of 256 tokens a step, on all cores."};
}

void AddFlags(Flags* flags, BenchFlags* out) {
  flags->Switch("--limits",
                "time, memory and plan size of compiling the largest models; exits with 1 when one "
                "is above its limit",
                &out->limits);
  flags->Switch("--one-rank", "leave out the eight ranks", &out->one_rank_only);
  flags->Integer("--layers", "layers of the model (default: all of them)", {1, 12}, "F3",
                 &out->layers);
  flags->Integer("--repetitions", "of everything (default: 7, with --limits 3)", {1, 1000}, "F3",
                 &out->repetitions);
  flags->Integer("--workers", "threads that run ranks (default: all cores)", {1, 1024}, "F3",
                 &out->workers);
  flags->Switch("--json", "print JSON", &out->json);
}

// The folder of this program, where mgc-compile and mgc-verify lie too.
std::string OwnFolder() {
  std::string path(4096, '\0');
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return path.substr(0, path.rfind('/'));
}

int Limits(const BenchFlags& flags) {
  std::vector<LimitResult> results;
  for (const LimitCase& limit : LimitCases()) {
    absl::StatusOr<LimitResult> result = MeasureLimit(
        OwnFolder(), limit, static_cast<int>(flags.repetitions.value_or(kLimitRepetitions)));
    if (!result.ok()) return Fail(result.status(), kExitFailed);
    results.push_back(*std::move(result));
  }
  const int written = Finish(flags.json ? LimitsJson(results) : LimitsText(results));
  const bool within = std::all_of(results.begin(), results.end(),
                                  [](const LimitResult& result) { return result.within(); });
  return written == kExitOk && !within ? kExitFailed : written;
}

// One global batch of kSequences on one rank.
ParallelConfig OneRank() {
  ParallelConfig config;
  config.micro_batch_size = config.global_batch_size = kSequences;
  config.seq_length = kSequenceLength;
  return config;
}

// The same batch over tp 2, pp 2 and dp 2.
ParallelConfig EightRanks() {
  ParallelConfig config = OneRank();
  config.world_size = 8;
  config.tp = config.pp = 2;
  config.micro_batch_size = 1;
  return config;
}

// Seconds of all threads of this process.
double CpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Runs `side` once more and keeps its times unless this is a warm-up.
template <typename Side>
absl::Status Measure(bool warm_up, const Side& side, Timings* timings) {
  const double cpu = CpuSeconds();
  MGC_ASSIGN_OR_RETURN(const double seconds, side());
  if (warm_up) return absl::OkStatus();
  timings->seconds.push_back(seconds);
  timings->cpu_seconds.push_back(CpuSeconds() - cpu);
  return absl::OkStatus();
}

// The sides take turns, after two steps of each that touch all memory and are traced.
absl::Status Repeat(int64_t repetitions, ProductRunner& products, TrainingSteps& one_rank,
                    TrainingSteps* eight_ranks, TrainingReport* report) {
  constexpr int64_t kWarmUp = 2;
  for (int64_t i = 0; i < kWarmUp + repetitions; ++i) {
    const bool warm_up = i < kWarmUp;
    MGC_RETURN_IF_ERROR(Measure(
        warm_up, [&]() -> absl::StatusOr<double> { return products.Run(); }, &report->products));
    MGC_RETURN_IF_ERROR(Measure(
        warm_up, [&] { return one_rank.Step(); }, &report->one_rank));
    if (eight_ranks == nullptr) continue;
    MGC_RETURN_IF_ERROR(Measure(
        warm_up, [&] { return eight_ranks->Step(); }, &report->eight_ranks));
  }
  const auto keep = [](const TrainingSteps& steps, Timings* timings) {
    timings->shares = steps.shares();
    timings->shares_seconds = steps.shares_seconds();
    timings->peak_bytes = steps.peak_bytes();
  };
  keep(one_rank, &report->one_rank);
  if (eight_ranks != nullptr) keep(*eight_ranks, &report->eight_ranks);
  return absl::OkStatus();
}

absl::StatusOr<TrainingReport> MeasureTraining(const BenchFlags& flags) {
  TrainingReport report;
  report.model = "gpt2-124m";
  report.workers = static_cast<int>(flags.workers.value_or(ReadHost().processors));
  MGC_ASSIGN_OR_RETURN(ModelConfig model, LoadModelPreset(report.model));
  model.layers = report.layers = flags.layers.value_or(model.layers);
  report.tokens = kSequences * kSequenceLength;
  std::vector<StepProduct> products = ProductsOfStep(model, kSequences, kSequenceLength);
  report.product_flops = FlopsOf(products);
  report.products.name = "products by oneDNN";
  report.one_rank.name = "training, one rank";
  report.eight_ranks.name = "training, tp 2, pp 2, dp 2";
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<ProductRunner> runner,
                       ProductRunner::Create(std::move(products)));
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingSteps> one_rank,
                       TrainingSteps::Create(model, OneRank(), report.workers));
  std::unique_ptr<TrainingSteps> eight_ranks;
  if (!flags.one_rank_only) {
    MGC_ASSIGN_OR_RETURN(eight_ranks, TrainingSteps::Create(model, EightRanks(), report.workers));
  }
  MGC_RETURN_IF_ERROR(Repeat(flags.repetitions.value_or(kTrainingRepetitions), *runner, *one_rank,
                             eight_ranks.get(), &report));
  return report;
}

int Main(const Words& arguments) {
  Flags parser(About());
  BenchFlags flags;
  AddFlags(&parser, &flags);
  ParsedFlags parsed = parser.Parse(arguments);
  if (parsed.text) return Finish(*parsed.text);
  if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kCommand);
  if (flags.limits) return Limits(flags);
  const absl::StatusOr<TrainingReport> report = MeasureTraining(flags);
  if (!report.ok()) return Fail(report.status(), kExitFailed);
  return Finish(flags.json ? ReportJson(*report) : ReportText(*report));
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
