// mgc-bench: speed beside a peer in the same run, and what compiling may cost.

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontends/model_config.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/text/machine_text.h"
#include "kernels/simd_level.h"
#include "runtime/run/host.h"
#include "tools/benchmarks/calibrate.h"
#include "tools/benchmarks/calibrate_gpu.h"
#include "tools/benchmarks/comparison.h"
#include "tools/benchmarks/comparisons.h"
#include "tools/benchmarks/layouts.h"
#include "tools/benchmarks/limits.h"
#include "tools/benchmarks/report.h"
#include "tools/cli/command.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/devices/devices.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-bench";
constexpr char kGpusByDefault[] = "h100x8";
constexpr int64_t kLimitRepetitions = 3;
constexpr int64_t kTrainingRepetitions = 7;
constexpr int64_t kLayoutRepetitions = 20;

struct BenchFlags {
  bool limits = false;
  bool calibrate = false;
  bool layouts = false;
  bool json = false;
  std::vector<std::string> comparisons;
  absl::optional<int64_t> layers, repetitions, workers;
  absl::optional<std::string> torch, transformers, mpi, output, cluster, device;
};

CommandText About() {
  return {
      kCommand,
      "",
      "measure training beside its matrix products, or the compiler's limits",
      {"mgc-bench", "mgc-bench --compare two-ranks --json", "mgc-bench --calibrate -o machine.mgc",
       "mgc-bench --calibrate --device cuda -o gpu.mgc", "mgc-bench --cluster machine.mgc",
       "mgc-bench --layouts", "mgc-bench --limits"},
      "Without --limits, --calibrate and --layouts: gpt2-124m in f32 and bf16 on all cores, sides "
      "taking "
      "turns."};
}

void AddFlags(Flags* flags, BenchFlags* out) {
  flags->Switch("--limits",
                "time, memory and plan size of compiling the largest models; exits with 1 when one "
                "is above its limit",
                &out->limits);
  flags->Switch("--calibrate",
                "write a description of this machine, measured, for --cluster (with -o)",
                &out->calibrate);
  flags->Switch("--layouts",
                "predicted steps of many layouts beside what they take, and whether predictions "
                "order them; calibrates first, but for --cluster",
                &out->layouts);
  flags->Text("-o,--output", "FILE", "where --calibrate or --layouts writes the machine",
              &out->output);
  flags->Text("--cluster", "MACHINE",
              "a calibrated machine, of which steps are predicted beside what they take; with "
              "--device cuda the one whose networks are taken over (default h100x8)",
              &out->cluster);
  flags->Choice("--device", {kCpuDevice, kCudaDevice}, "what --calibrate measures (default cpu)",
                &out->device);
  flags->Choices("--compare", kComparisons, "which sides (default: one-rank)", &out->comparisons);
  flags->Text("--torch", "COMMAND",
              "beside PyTorch: what runs tools/benchmarks/torch_step.py, words between blanks",
              &out->torch);
  flags->Text("--transformers", "COMMAND",
              "generation beside transformers': what runs tools/benchmarks/torch_generate.py",
              &out->transformers);
  flags->Text(
      "--mpi", "COMMAND",
      "process-sums beside MPI's: what runs mpi_sums in two processes, words between blanks",
      &out->mpi);
  flags->Integer("--layers", "layers of the model (default: all of them)", {1, 12}, "F3",
                 &out->layers);
  flags->Integer(
      "--repetitions",
      "of everything (default: 7, with --limits 3, with --calibrate 5, with --layouts 20)",
      {1, 1000}, "F3", &out->repetitions);
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

int WorkersOf(const BenchFlags& flags) {
  return static_cast<int>(flags.workers.value_or(ReadHost().processors));
}

absl::StatusOr<Machine> CalibrateHere(const BenchFlags& flags) {
  MGC_ASSIGN_OR_RETURN(CalibrationSetting setting,
                       flags.calibrate ? DefaultCalibration() : LayoutCalibration());
  setting.workers = WorkersOf(flags);
  if (flags.calibrate) setting.rounds = flags.repetitions.value_or(setting.rounds);
  MGC_RETURN_IF_ERROR(PinSides(setting.workers));
  MGC_ASSIGN_OR_RETURN(Machine machine, Calibrate(setting));
  if (flags.output) {
    MGC_RETURN_IF_ERROR(WriteFileAtomically(*flags.output, PrintMachine(machine)));
  }
  return machine;
}

absl::Status CalibrateGpuHere(const BenchFlags& flags) {
  MGC_ASSIGN_OR_RETURN(const Gpus gpus, FindGpus());
  MGC_ASSIGN_OR_RETURN(const RunDevice device, MakeRunDevice(kCudaDevice, {}));
  MGC_ASSIGN_OR_RETURN(const Machine like, LoadMachine(flags.cluster.value_or(kGpusByDefault)));
  MGC_ASSIGN_OR_RETURN(GpuCalibrationSetting setting, DefaultGpuCalibration(gpus));
  setting.rounds = flags.repetitions.value_or(setting.rounds);
  std::vector<std::string> notes;
  MGC_ASSIGN_OR_RETURN(const Machine machine, CalibrateGpu(setting, device, like, &notes));
  PrintNotes(notes);
  return WriteFileAtomically(*flags.output, PrintMachine(machine));
}

absl::StatusOr<std::string> WriteCalibration(const BenchFlags& flags) {
  MGC_RETURN_IF_ERROR(flags.device == kCudaDevice ? CalibrateGpuHere(flags)
                                                  : CalibrateHere(flags).status());
  return absl::StrCat("wrote ", *flags.output, "\n");
}

// Whose plans are predicted: of a preset nothing would be said, since ranks here share cores.
absl::StatusOr<Machine> MachineOf(const BenchFlags& flags) {
  MGC_ASSIGN_OR_RETURN(Machine machine, LoadMachine(flags.cluster.value_or(kDefaultMachine)));
  if (flags.cluster.has_value() && machine.cores == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("machine ", machine.name,
                     " does not say how many `cores` ranks share; nearest legal: --cluster with a "
                     "file that --calibrate -o FILE has written"));
  }
  return machine;
}

absl::StatusOr<BenchReport> CompareAll(const BenchFlags& flags) {
  BenchReport report;
  report.model = "gpt2-124m";
  report.workers = WorkersOf(flags);
  report.instructions = std::string(NameOf(BestSimdLevel()));
  BenchSetting setting;
  setting.workers = report.workers;
  MGC_ASSIGN_OR_RETURN(setting.machine, MachineOf(flags));
  MGC_RETURN_IF_ERROR(PinSides(setting.workers));
  setting.torch = absl::StrSplit(flags.torch.value_or(""), ' ', absl::SkipEmpty());
  setting.transformers = absl::StrSplit(flags.transformers.value_or(""), ' ', absl::SkipEmpty());
  setting.mpi = absl::StrSplit(flags.mpi.value_or(""), ' ', absl::SkipEmpty());
  MGC_ASSIGN_OR_RETURN(setting.model, LoadModelPreset(report.model));
  setting.model.layers = report.layers = flags.layers.value_or(setting.model.layers);
  std::vector<std::string> names = flags.comparisons;
  if (names.empty()) names.emplace_back(kOneRank);
  for (const std::string& name : names) {
    for (const Comparison& comparison : ComparisonsNamed(name, setting)) {
      MGC_ASSIGN_OR_RETURN(ComparisonResult result,
                           Compare(comparison, flags.repetitions.value_or(kTrainingRepetitions)));
      report.comparisons.push_back(std::move(result));
    }
  }
  return report;
}

absl::StatusOr<LayoutReport> RankLayouts(const BenchFlags& flags) {
  BenchSetting setting;
  MGC_ASSIGN_OR_RETURN(LayoutModel model, DefaultLayoutModel());
  model.config.layers = flags.layers.value_or(model.config.layers);
  setting.model = model.config;
  setting.workers = WorkersOf(flags);
  MGC_ASSIGN_OR_RETURN(setting.machine,
                       flags.cluster.has_value() ? MachineOf(flags) : CalibrateHere(flags));
  MGC_RETURN_IF_ERROR(PinSides(setting.workers));
  LayoutReport report{
      model.name, setting.model.layers, setting.workers, std::string(NameOf(BestSimdLevel())), {}};
  MGC_ASSIGN_OR_RETURN(report.result, Compare(LayoutComparison(setting),
                                              flags.repetitions.value_or(kLayoutRepetitions)));
  return report;
}

int Main(const Words& arguments) {
  Flags parser(About());
  BenchFlags flags;
  AddFlags(&parser, &flags);
  ParsedFlags parsed = parser.Parse(arguments);
  if (parsed.text) return Finish(*parsed.text);
  if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kCommand);
  const bool calibrates = flags.calibrate || (flags.layouts && !flags.cluster);
  if (flags.output ? !calibrates : flags.calibrate) {
    Diagnostics usage;
    usage.Add({"F5",
               flags.calibrate ? "--calibrate is given without -o FILE"
                               : "-o FILE is given and nothing is calibrated",
               "--calibrate -o machine.mgc"});
    return Refuse(usage, {}, kCommand);
  }
  if (flags.device == kCudaDevice && !flags.calibrate) {
    Diagnostics usage;
    usage.Add({"F7", "--device cuda is given and nothing is calibrated",
               "--calibrate --device cuda -o gpu.mgc"});
    return Refuse(usage, {}, kCommand);
  }
  if (flags.limits) return Limits(flags);
  if (flags.calibrate) {
    const absl::StatusOr<std::string> written = WriteCalibration(flags);
    return written.ok() ? Finish(*written) : Fail(written.status(), kExitFailed);
  }
  if (flags.layouts) {
    const absl::StatusOr<LayoutReport> report = RankLayouts(flags);
    if (!report.ok()) return Fail(report.status(), kExitFailed);
    return Finish(flags.json ? LayoutsJson(*report) : LayoutsText(*report));
  }
  const absl::StatusOr<BenchReport> report = CompareAll(flags);
  if (!report.ok()) return Fail(report.status(), kExitFailed);
  return Finish(flags.json ? ReportJson(*report) : ReportText(*report));
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
