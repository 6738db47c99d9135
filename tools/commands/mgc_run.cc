// mgc-run: trains the model of a plan.

#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/results.h"
#include "graph/ir/vocabulary.h"
#include "graph/verify/verify.h"
#include "kernels/simd_level.h"
#include "runtime/data/data.h"
#include "runtime/train/trainer.h"
#include "tools/cli/check_run.h"
#include "tools/cli/command.h"
#include "tools/cli/data_flags.h"
#include "tools/cli/instruction_set.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/proof.h"
#include "tools/cli/run_flags.h"
#include "tools/cli/step_sizes.h"
#include "tools/devices/devices.h"
#include "tools/launch/injection.h"
#include "tools/launch/launch_env.h"
#include "tools/launch/launcher.h"
#include "tools/launch/mpi_run.h"
#include "tools/models/model_dir.h"
#include "tools/training/train_in_world.h"
#include "tools/views/counted.h"
#include "tools/views/step_work.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-run";

CommandText About() {
  return {kCommand,
          "PLAN",
          "train the model of a plan: its ranks as threads, or in several processes",
          {"mgc-run tiny.plan --data text.txt --steps 20 --lr 1e-3",
           "mgc-run tiny.plan --data text.txt --steps 20 --json --metrics metrics.jsonl",
           "mgc-run tiny.plan --data 0.3 text.txt 0.7 text.txt --shuffle --steps 4",
           "mgc-run tiny.plan --data text.txt --steps 4 --trace timeline.json",
           "mgc-run tiny.plan --data text.txt --steps 100 --save checkpoints --save-interval 50",
           "mgc-run tiny.plan --load checkpoints --eval-only --eval-data text.txt",
           "mgc-run --nproc 2 tiny.plan --data text.txt --steps 4",
           "mgc-run tiny.plan --check --rank 3",
           "mgc-run tiny.plan --inputs tokens=words.npy --inputs targets=next.npy --steps 2"},
          "A line a step: mean loss before the update, gradient norm before clipping, time, tokens "
          "per\n"
          "second, peak memory of a rank; and a line an evaluation. What is counted instead of "
          "tokens,\n"
          "the model says. As JSON, numbers that are not finite are the strings \"NaN\", "
          "\"Infinity\", \"-Infinity\"."};
}

void NoteWhatIsCounted(const Plan& plan) {
  if (CountedUnit(plan.model) == "tokens") return;
  PrintNotes({absl::StrCat("losses are means over ", CountedText(plan.model))});
}

void NoteWhoAdds(const RunFlags& flags) {
  if (!LibraryAllReduces(flags)) return;
  PrintNotes(
      {"sums between processes come from the MPI library, in its order: losses may differ from "
       "those of one process in their last bits"});
}

void NoteWhoRounds(const RunFlags& flags) {
  if (!flags.tf32) return;
  PrintNotes(
      {"products of f32 round their operands to TF32, 10 bits of fraction: losses differ from "
       "those without --tf32, and checkpoints do not say which was used"});
}

LaunchOptions LaunchOptionsOf(const RunFlags& flags) {
  LaunchOptions options;
  options.command = kCommand;
  options.watchdog_seconds = flags.watchdog_seconds.value_or(options.watchdog_seconds);
  options.run_dir = flags.run_dir.value_or("");
  return options;
}

// Runs the plan in as many processes of this host as are asked for.
int Launch(const RunBasis& basis) {
  const RunFlags& flags = basis.flags;
  const auto body = [&basis](World& world) { return TrainInWorld(world, basis); };
  const int64_t ranks = basis.plan.mesh.world_size();
  const int64_t each = flags.ranks_per_process.value_or(0);
  const int64_t processes = flags.nproc.value_or(each > 0 ? (ranks + each - 1) / each : int64_t{1});
  const absl::StatusOr<ProcessMap> map = ProcessMap::Create(ranks, processes, each);
  if (!map.ok()) return Fail(map.status(), kExitInfeasible);
  return processes == 1 ? RunHere(basis.plan, LaunchOptionsOf(flags), body)
                        : RunForked(basis.plan, *map, LaunchOptionsOf(flags), body);
}

// A command line that has been read, with what belongs to it; nothing moves.
struct Command {
  absl::optional<LaunchedBy> launched;
  RunFlags flags;
  absl::optional<Plan> plan;
  std::deque<Plan> smaller;  // steps of other sizes than the plan's
  RunDevice device;
  absl::optional<ModelDir> init;
  absl::optional<RunBasis> basis;
};

// Reads the command line and the plan. The exit code where the command ends with that.
absl::optional<int> ReadCommandLine(const Words& arguments, Command* command) {
  Flags parser(About());
  RunFlags& flags = command->flags;
  AddRunFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  parsed.errors.Append(CheckRunUsage(flags, parsed));
  const LaunchedBy launched = command->launched.value_or(LaunchedBy());
  parsed.errors.Append(CheckLauncher(flags, launched.launcher, launched.size));
  Diagnostics violations;
  if (parsed.bad_flags.empty()) {
    violations = CheckRunFlags(flags);
    violations.Append(CheckInstructionSet(flags.instruction_set, BestSimdLevel()));
  }
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCommand);
  }
  absl::StatusOr<RunDevice> device =
      MakeRunDevice(flags.device.value_or(kCpuDevice),
                    {!flags.no_cuda_graphs && !flags.check_kernels, flags.check_kernels,
                     static_cast<int>(flags.gpus.value_or(0)), flags.tf32});
  if (!device.ok()) return Fail(device.status(), kExitInfeasible);
  command->device = *std::move(device);
  absl::StatusOr<Plan> plan = ReadPlan(flags.plans[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const bool evaluates = flags.eval_only && ResultsOf(plan->model).empty();
  if (IsAsked(plan->model) && !evaluates) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
                    EscapeBytes(flags.plans[0]),
                    ": the plan trains nothing; --eval-only runs one of mgc-compile --eval-only, "
                    "mgc-generate one of --next-token")),
                kExitInfeasible);
  }
  command->plan = *std::move(plan);
  return absl::nullopt;
}

// Opens what the run begins with.
absl::Status OpenInit(Command* command) {
  if (!command->flags.init) return absl::OkStatus();
  MGC_ASSIGN_OR_RETURN(command->init, OpenModelFor(*command->plan, *command->flags.init,
                                                   command->flags.init_adapter));
  return absl::OkStatus();
}

// The plan and its smaller steps.
int EnsureAllProved(Command* command) {
  int code = EnsureProved(&*command->plan);
  for (Plan& smaller : command->smaller) {
    if (code == kExitOk) code = EnsureProved(&smaller);
  }
  return code;
}

// Reads all that a run stands on but its proof. The exit code where the command ends with that.
absl::optional<int> Prepare(const Words& arguments, Command* command) {
  if (const auto code = ReadCommandLine(arguments, command)) return *code;
  const RunFlags& flags = command->flags;
  std::vector<StepsFrom> steps;
  if (flags.step_sizes) {
    const auto code =
        ReadSteps(*flags.step_sizes, *command->plan, kCommand, &command->smaller, &steps);
    if (code) return *code;
  }
  if (flags.check) return CheckRun(*command->plan, flags, command->device.kernels(), kCommand);
  Diagnostics scales = CheckLossScaleFlags(flags, *command->plan);
  scales.Append(CheckOptimizerFlags(flags, *command->plan));
  if (!scales.empty()) return Refuse(Diagnostics(), scales, kCommand);
  for (const NamedPath& result : ResultsOf(flags)) {
    if (absl::Status status = CheckWritable(result.path); !status.ok()) {
      return Fail(status, kExitFailed);
    }
  }
  if (const absl::Status opened = OpenInit(command); !opened.ok()) {
    return Fail(opened, kExitBadModel);
  }
  command->basis.emplace(
      RunBasis{*command->plan, flags, TrainOptionsOf(flags, *command->plan), absl::nullopt});
  if (command->init) command->basis->init = &command->init->files;
  TrainOptions& train = command->basis->train;
  train.kernels = command->device.kernels();
  train.device = command->device.make;
  const PlanWork work = WorkOf(*command->plan);
  train.work = {work.flops, work.device_seconds};
  train.simd_level = InstructionSetOf(flags.instruction_set, BestSimdLevel());
  train.steps = std::move(steps);
  if (!flags.inject) return absl::nullopt;
  const absl::StatusOr<Injection> injection = ParseInjection(*flags.inject);
  if (!injection.ok()) return Fail(injection.status(), kExitUsage);
  command->basis->injection = *injection;
  return absl::nullopt;
}

// Opens what to train and evaluate on: once, for all processes that are forked later.
absl::Status OpenTexts(Command* command) {
  TrainOptions& train = command->basis->train;
  const Plan& plan = *command->plan;
  DataFlags flags = command->flags.data;
  flags.eod_mask_loss |= command->flags.by_document;  // what fills up a document is no target
  MGC_ASSIGN_OR_RETURN(OpenedData data,
                       OpenData(flags, {plan.seq_length, VocabularyOf(plan.model), train.seed}));
  train.data = std::move(data.train);
  train.eval_data = std::move(data.eval);
  // Nothing is trained: what is evaluated stands where the text to train on would.
  if (command->flags.eval_only && !train.data.has_value()) train.data = train.eval_data;
  return absl::OkStatus();
}

// What is done before processes are forked; notes for people.
int RunOnThisHost(Command& command) {
  const Plan& plan = *command.plan;
  const RankRange all = {0, plan.mesh.world_size()};
  const absl::Status fits = CheckFits(plan, command.device.host, {&all, 1},
                                      static_cast<int>(command.flags.workers.value_or(0)));
  if (!fits.ok()) return Fail(fits, kExitFailed);
  if (const int code = EnsureAllProved(&command); code != kExitOk) return code;
  if (absl::Status opened = OpenTexts(&command); !opened.ok()) return Fail(opened, kExitBadModel);
  if (command.init) PrintNotes(command.init->notes);
  NoteWhatIsCounted(plan);
  NoteWhoRounds(command.flags);
  return Launch(*command.basis);
}

// Hashes of what processes must have in common: files may differ from host to host. Instruction
// sets need not be equal, all use the least.
absl::StatusOr<Terms> TermsOf(const Command& command, const Words& arguments) {
  const TrainOptions& train = command.basis->train;
  Terms terms = {{"options", absl::StrJoin(WithoutInstructionSet(arguments), " ")},
                 {"versions", absl::StrCat("plan ", kPlanVersion, ", verifier ", kVerifierVersion)},
                 {"results of the C library's log, pow and cos", HashMathematics()},
                 {"plans", HashText(PlanContent(*command.plan, command.flags.plans[0]))}};
  if (command.init) {
    terms.emplace_back("the weights to begin with", HashText(command.init->files.Identity()));
  }
  std::vector<std::string> files = TrainFilesOf(command.flags.data);
  for (std::string& file : EvalFilesOf(command.flags.data)) files.push_back(std::move(file));
  for (const auto* inputs : {&train.inputs, &train.eval_inputs}) {
    for (const InputFile& file : *inputs) files.push_back(file.place.path);
  }
  for (const std::string& file : files) {
    if (file == "-") {
      return absl::InvalidArgumentError(
          "a launcher gives stdin to one process only: name a file that all can read");
    }
    MGC_ASSIGN_OR_RETURN(const std::string hash, HashFile(file));
    terms.emplace_back(absl::StrCat("contents of ", file), hash);
  }
  return terms;
}

// What a process prepares that a launcher has started as one of several.
Prepared PrepareMember(const Words& arguments, Command* command) {
  Prepared prepared;
  if (const auto code = Prepare(arguments, command)) {
    prepared.code = *code;
    return prepared;
  }
  const RunFlags& flags = command->flags;
  absl::StatusOr<Terms> terms = TermsOf(*command, arguments);
  if (!terms.ok()) {
    prepared.code = Fail(terms.status(), kExitBadModel);
    return prepared;
  }
  prepared.terms = *std::move(terms);
  if (const absl::Status opened = OpenTexts(command); !opened.ok()) {
    prepared.code = Fail(opened, kExitBadModel);
    return prepared;
  }
  prepared.plan = &*command->plan;
  prepared.kernels_on = command->device.host;
  prepared.simd_level = command->basis->train.simd_level;
  prepared.options = LaunchOptionsOf(flags);
  prepared.ranks_per_process = flags.ranks_per_process.value_or(0);
  prepared.library_all_reduces = LibraryAllReduces(flags);
  return prepared;
}

int RunAsMember(const LaunchedBy& by, const Words& arguments) {
  Command command;
  MpiBody body;
  command.launched = by;
  body.command = kCommand;
  body.prepare = [&] { return PrepareMember(arguments, &command); };
  body.prove = [&command] {
    if (command.init) PrintNotes(command.init->notes);
    NoteWhatIsCounted(*command.plan);
    NoteWhoAdds(command.flags);
    NoteWhoRounds(command.flags);
    return EnsureAllProved(&command);
  };
  body.run = [&command](World& world) { return TrainInWorld(world, *command.basis); };
  return RunUnderMpi(by, body);
}

int Main(const Words& arguments) {
  const auto by = FindLauncher(SystemEnvironment());
  if (!by.ok()) return Fail(by.status(), kExitFailed);
  if (by->has_value() && (*by)->size > 1) return RunAsMember(**by, arguments);
  Command command;
  command.launched = *by;
  if (const auto code = Prepare(arguments, &command)) return *code;
  return RunOnThisHost(command);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
