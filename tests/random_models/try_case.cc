// Compiles, proves and trains a case in a child process.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "passes/compile.h"
#include "tests/random_models/random_case.h"
#include "tests/same_loss/step_in_double.h"
#include "tests/same_loss/train_samples.h"
#include "tools/cli/strategy_source.h"

namespace mgc {
namespace {

constexpr int kCpuSeconds = 60;    // of a case; most take milliseconds
constexpr int kWallSeconds = 600;  // where nothing runs any more
constexpr int64_t kSteps = 2;
constexpr uint64_t kTrainSeed = 1234;
constexpr uint64_t kTrainSeeds = 3;

// `[shard_c3]` at the end of the first line.
std::string LabelOf(absl::string_view message) {
  const absl::string_view line = *absl::StrSplit(message, '\n').begin();
  const size_t begin = line.rfind('[');
  if (begin == absl::string_view::npos) return "no label";
  const absl::string_view rest = line.substr(begin + 1);
  return std::string(rest.substr(0, rest.find(']')));
}

absl::StatusOr<Plan> CompileCase(const RandomCase& c) {
  std::vector<std::string> notes;
  const Graph model = PrepareModel(c.model, &notes);
  CompileOptions options;
  options.parallel = c.parallel;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("cpu-threads"));
  if (c.strategy) {
    options.strategy = *c.strategy;
  } else {
    absl::optional<std::string> name;
    const absl::StatusOr<std::string> chosen = LayOutIfUnnamed(model, ModelDims(), &name, &options);
    if (!chosen.ok()) return chosen.status();
  }
  return Compile(model, ModelDims(), options);
}

// The same model on one rank.
RandomCase WithoutAxes(RandomCase c) {
  c.parallel = OnOneRank(c.parallel);
  c.strategy = DefaultStrategy();
  return c;
}

// Axes of several ranks that cut no value of the plan.
std::string IdleAxes(const Plan& plan) {
  AxisSet used;
  for (const Segment& segment : plan.segments) {
    for (const Slot& slot : segment.slots) used = used | slot.sharding.SplitAxes();
  }
  std::string idle;
  for (AxisId axis = 0; axis < plan.mesh.num_axes(); ++axis) {
    if (axis == PipelineAxis(plan.mesh) || plan.mesh.size(axis) == 1 || used.Contains(axis)) {
      continue;
    }
    absl::StrAppend(&idle, plan.mesh.name(axis), " cuts nothing; ");
  }
  return idle;
}

// Trains a plan beside one of one rank, from the same first values.
Outcome TrainBoth(const Plan& one, const Plan& many, uint64_t seed) {
  const absl::StatusOr<TrainResult> expected = TrainOnSamples(one, kSteps, seed);
  if (!expected.ok()) return {Ending::kFailed, "", expected.status().ToString()};
  const absl::StatusOr<TrainResult> found = TrainOnSamples(many, kSteps, seed);
  if (!found.ok()) return {Ending::kFailed, "", found.status().ToString()};
  const std::string difference = Difference(*expected, *found);
  if (difference.empty()) return {};
  const absl::StatusOr<StepInDouble> exact = TakeStepInDouble(one, seed);
  if (!exact.ok()) return {Ending::kFailed, "", exact.status().ToString()};
  if (IsBeyondF32(*exact, *expected)) return {Ending::kBeyondF32, "", ""};
  const std::string farther = DifferenceFrom(*exact, *expected, *found);
  return farther.empty() ? Outcome{} : Outcome{Ending::kOtherNumbers, "", farther};
}

Outcome TryHere(const RandomCase& c, bool train) {
  absl::StatusOr<Plan> plan = CompileCase(c);
  if (!plan.ok()) {
    const std::string message(plan.status().message());
    // What a pass has made is checked for mistakes of ours.
    const bool refused =
        absl::IsInvalidArgument(plan.status()) && !absl::StartsWith(message, "after pass ");
    return {refused ? Ending::kRefused : Ending::kFailed, LabelOf(message), message};
  }
  if (const absl::Status proof = ProvePlan(&*plan); !proof.ok()) {
    const std::string message(proof.message());
    return {Ending::kRefusedByProof, LabelOf(message), message};
  }
  if (const std::string idle = IdleAxes(*plan); !idle.empty())
    return {Ending::kReplicated, "", idle};
  if (!train) return {};
  const absl::StatusOr<Plan> one = CompileCase(WithoutAxes(c));
  if (!one.ok()) return {Ending::kFailed, "", one.status().ToString()};
  // Rounding may be small on one rank by luck; a wrong plan is off from whatever values.
  Outcome outcome;
  for (uint64_t seed = kTrainSeed; seed < kTrainSeed + kTrainSeeds; ++seed) {
    outcome = TrainBoth(*one, *plan, seed);
    if (outcome.ending != Ending::kOtherNumbers) break;
  }
  return outcome;
}

// What the child says: ending, label, message, each on a line.
void Say(int pipe, const Outcome& outcome) {
  const std::string text =
      absl::StrCat(static_cast<int>(outcome.ending), "\n", outcome.label, "\n", outcome.message);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(pipe, text.data() + done, text.size() - done);
    if (wrote <= 0) return;
    done += static_cast<size_t>(wrote);
  }
}

std::string ReadAll(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(pipe, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

[[noreturn]] void RunChild(int pipe, const RandomCase& c, bool train) {
  const rlimit limit = {kCpuSeconds, kCpuSeconds};
  setrlimit(RLIMIT_CPU, &limit);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kWallSeconds);
  Say(pipe, TryHere(c, train));
  _exit(0);
}

}  // namespace

std::string NameOf(Ending ending) {
  switch (ending) {
    case Ending::kProved:
      return "proved";
    case Ending::kBeyondF32:
      return "beyond f32";
    case Ending::kRefused:
      return "refused";
    case Ending::kRefusedByProof:
      return "refused by the proof";
    case Ending::kFailed:
      return "failed";
    case Ending::kReplicated:
      return "replicated";
    case Ending::kOtherNumbers:
      return "other numbers";
    case Ending::kAborted:
      return "aborted";
    case Ending::kHung:
      return "hung";
  }
  return "";
}

bool IsRight(Ending ending) {
  return ending == Ending::kProved || ending == Ending::kBeyondF32 || ending == Ending::kRefused;
}

Outcome Try(const RandomCase& c, bool train) {
  int ends[2];
  if (pipe(ends) != 0) return {Ending::kFailed, "", "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {Ending::kFailed, "", "no process"};
  if (child == 0) {
    close(ends[0]);
    RunChild(ends[1], c, train);
  }
  close(ends[1]);
  const std::string text = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool hung = signal == SIGALRM || signal == SIGXCPU || signal == SIGKILL;
    return {hung ? Ending::kHung : Ending::kAborted, "", absl::StrCat("signal ", signal)};
  }
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  if (parts.size() != 3) return {Ending::kAborted, "", absl::StrCat("status ", status)};
  return {static_cast<Ending>(std::stoi(parts[0])), parts[1], parts[2]};
}

}  // namespace mgc
