// mgc-compile: a model and a configuration in, a plan out.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "graph/text/printer.h"
#include "graph/types/machine.h"
#include "passes/compile.h"
#include "passes/config/check_config.h"
#include "passes/config/config_flags.h"
#include "passes/form_text.h"
#include "tools/cli/command.h"
#include "tools/cli/estimate_plan.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/plan_search.h"
#include "tools/cli/proof.h"
#include "tools/cli/strategy_source.h"
#include "tools/cli/svg.h"
#include "tools/cli/why_not.h"
#include "tools/views/drawings/dot.h"
#include "tools/views/found_plans.h"
#include "tools/views/show.h"
#include "tools/views/summary.h"
#include "tools/views/timing.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-compile";

struct CompileFlags {
  Words models;
  ParallelFlags parallel;
  absl::optional<std::string> cluster, output, dot, svg, report, dump_dir, stop_after;
  bool no_verify = false;
  bool timing = false;
  bool search = false;
  bool estimate = false;
  absl::optional<int64_t> budget;
  bool json_is_out = false;  // on stdout, which then holds nothing else
};

CommandText About() {
  return {
      kCommand,
      "MODEL",
      "compile a model into a plan for every rank",
      {"mgc-compile gpt2-tiny --tp 2 --pp 2 --world-size 8 --global-batch-size 8 -o tiny.plan",
       "mgc-compile llama-tiny --tp 2 --sequence-parallel --report json",
       "mgc-compile gpt2-tiny --pp 2 -o tiny.plan --dot tiny.dot --svg tiny.svg"},
      "MODEL is a preset (gpt2-124m, gpt3-1.3b, gpt3-175b, llama3-405b, megatron-1t, or a family's "
      "tiny one, as\ngemma2-tiny), a config.json or a folder with one, or a logical graph (.mgc, "
      "or - "
      "for stdin)."};
}

void AddFlags(Flags* flags, CompileFlags* out) {
  flags->Arguments(1, 1, &out->models);
  flags->Section("Results");
  flags->Text("-o,--output", "PLAN", "the plan; as text where the name ends in .mgc; - is stdout",
              &out->output);
  flags->Choice("--report", {"text", "json"},
                "print what mgc-plan show does; with --auto, the plans that were found, with "
                "--estimate-only the estimate",
                &out->report);
  flags->Text("--dot", "FILE", "a drawing for Graphviz", &out->dot);
  flags->Text("--svg", "FILE", "the drawing rendered, where Graphviz's dot is installed",
              &out->svg);
  flags->Text("--dump-dir", "DIR",
              "what every pass makes, as text; the folder is made if it is missing",
              &out->dump_dir);
  flags->Choice("--stop-after", PassNames(CompilePasses()),
                "end after this pass (the first of its name) and write what it makes as text",
                &out->stop_after);
  flags->Switch("--timing",
                "say on stderr how long each pass and the proof took; --report json has it too",
                &out->timing);
  flags->Switch("--no-verify", "do not prove the plan", &out->no_verify);
  flags->Section("Search");
  flags->Switch("--auto",
                "find the fastest plan that fits: sizes of the mesh and its order, chunks, "
                "micro-batch, ZeRO, recomputation and sequence parallelism, but for what flags fix",
                &out->search);
  flags->Switch(
      "--estimate-only",
      "write no plan: say how long a step is, whether it fits into a device of --cluster, "
      "where it needs most, and which single changes would make it fit",
      &out->estimate);
  flags->Integer(
      "--auto-budget",
      "plans to compile in the search, at most (default 16); twice as many to climb from "
      "the best over its neighbours",
      {1, 1 << 20}, "F3", &out->budget);
  AddMeshFlags(flags, &out->parallel);
  flags->Text(
      "--cluster", "NAME",
      "the machines: a preset (cpu-threads, a100x8, h100x8, h200x8, b200x8) or a file; then a "
      "plan that needs more memory than a device has is refused",
      &out->cluster);
  AddScheduleFlags(flags, &out->parallel);
  AddTrainingFlags(flags, &out->parallel);
}

// What follows from a plan: a graph has none of it.
std::vector<NamedPath> ViewsAskedFor(const CompileFlags& flags) {
  std::vector<NamedPath> views;
  if (flags.report) views.push_back({"--report", "-"});
  if (flags.dot) views.push_back({"--dot", *flags.dot});
  if (flags.svg) views.push_back({"--svg", *flags.svg});
  return views;
}

std::vector<NamedPath> InputsOf(const CompileFlags& flags) {
  std::vector<NamedPath> inputs;
  for (const std::string& model : flags.models) {
    if (model == "-") inputs.push_back({"MODEL", model});
    if (const auto path = ModelPath(model)) inputs.push_back({"MODEL", *path});
  }
  if (flags.cluster && !FindMachinePreset(*flags.cluster).ok()) {
    inputs.push_back({"--cluster", *flags.cluster});
  }
  if (const auto path = StrategyPath(flags.parallel.strategy)) {
    inputs.push_back({"--strategy", *path});
  }
  return inputs;
}

// F6: nothing to write, views of a plan that is not made, paths in each other's way.
void CheckPathsOf(const CompileFlags& flags, ParsedFlags* parsed) {
  std::vector<NamedPath> results = ViewsAskedFor(flags);
  if (flags.stop_after) {
    for (const NamedPath& view : results) {
      parsed->errors.Add(
          {"F6", absl::StrCat(view.name, " needs a plan, and --stop-after makes none"), ""});
    }
    results.clear();
  }
  const bool graph = flags.stop_after && !flags.dump_dir;
  if (flags.output || graph) results.push_back({"-o", flags.output.value_or("-")});
  if (results.empty() && !flags.dump_dir && !flags.search && !flags.estimate) {
    parsed->errors.Add({"F6", "no result is asked for", "-o PLAN"});
  }
  parsed->errors.Append(CheckPaths(InputsOf(flags), results));
}

// F7: a search that is not asked for, and what it cannot look for.
void CheckSearchFlags(const CompileFlags& flags, ParsedFlags* parsed) {
  if (flags.budget && !flags.search) {
    parsed->errors.Add(
        {"F7", "--auto-budget limits a search, and none is asked for", "--auto too"});
  }
  if (flags.search && flags.parallel.strategy.value_or("") == kClassStrategy) {
    parsed->errors.Add({"F7", "--strategy classes chooses for one configuration, --auto among many",
                        "one of the two, or --strategy FILE with the rows that it has chosen"});
  }
}

// What follows from a plan that is not to be made.
void CheckEstimateFlags(const CompileFlags& flags, ParsedFlags* parsed) {
  const bool makes =
      flags.output || flags.dot || flags.svg || flags.dump_dir || flags.stop_after || flags.search;
  if (flags.estimate && makes) {
    parsed->errors.Add({"F7", "--estimate-only makes no plan, nor does it search for one",
                        "--estimate-only alone, or with --report json"});
  }
}

// What a plan records of its making.
PlanOptions OptionsOf(const ModelSource& source, const ParallelConfig& config,
                      const CheckedConfig& checked, const CompileFlags& flags) {
  PlanOptions options = {{"model", source.name}};
  for (auto& flag : FlagsOf(config, checked)) options.push_back(std::move(flag));
  const int64_t multiple = flags.parallel.vocab_multiple.value_or(1);
  if (multiple > 1) {
    options.push_back({"--make-vocab-size-divisible-by", absl::StrCat(multiple)});
  }
  if (flags.cluster) options.push_back({"--cluster", *flags.cluster});
  return options;
}

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Everything that may follow from a plan, as files; `missing` becomes the error of one that cannot
// be made.
std::vector<OutputFile> ResultsOf(const Plan& plan, const CompileFlags& flags,
                                  const std::vector<PassTime>& times, absl::Status* missing) {
  std::vector<OutputFile> files;
  if (flags.output) files.push_back({*flags.output, PlanContent(plan, *flags.output)});
  if (flags.dot || flags.svg) {
    const DotDrawing drawing = DrawPlan(plan, {});
    PrintNotes(drawing.collapsed);
    if (flags.dot) files.push_back({*flags.dot, drawing.dot});
    if (flags.svg) *missing = AddSvg(drawing.dot, *flags.svg, &files);
  }
  if (flags.report) {
    files.push_back({"-", *flags.report == "json" ? ShowJson(plan, times) : ShowText(plan)});
  }
  return files;
}

// By whatever name: `/dev/stdout` too.
bool IsStdout(const std::string& path) {
  struct stat named, standard;
  if (path == "-") return true;
  return stat(path.c_str(), &named) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
         named.st_dev == standard.st_dev && named.st_ino == standard.st_ino;
}

// Whether stdout is left for people.
bool StdoutIsFree(const std::vector<OutputFile>& results) {
  return std::none_of(results.begin(), results.end(),
                      [](const OutputFile& result) { return IsStdout(result.path); });
}

// What the passes make, as far as it is asked for, and how long they take.
class Dumps {
 public:
  explicit Dumps(const CompileFlags& flags) : flags_(flags) {}

  // Whether to go on.
  bool Take(const FinishedPass& pass) {
    times_.push_back({std::string(pass.name), pass.ns});
    const bool stop = flags_.stop_after && pass.name == *flags_.stop_after;
    if (!flags_.dump_dir && !stop) return true;
    const std::string text = PrintForm(pass.form);
    Dump(pass.name, text);
    if (stop && (flags_.output || !flags_.dump_dir)) {
      files_.push_back({flags_.output.value_or("-"), text});
    }
    return !stop;
  }
  // Whether Dump keeps anything.
  bool wanted() const { return flags_.dump_dir.has_value(); }
  // Whether what a pass makes is shown, of all layers then.
  bool shows_forms() const { return wanted() || flags_.stop_after.has_value(); }
  void Dump(absl::string_view name, const std::string& text) {
    if (!wanted()) return;
    files_.push_back(
        {absl::StrFormat("%s/%02d-%s.mgc", *flags_.dump_dir, files_.size(), name), text});
  }

  std::vector<PassTime>& times() { return times_; }

  // The files below --dump-dir so far.
  std::vector<NamedPath> Paths() const {
    std::vector<NamedPath> paths;
    for (const OutputFile& file : files_) paths.push_back({"--dump-dir", file.path});
    return paths;
  }

  absl::Status Write(std::vector<OutputFile> more) {
    if (flags_.dump_dir && mkdir(flags_.dump_dir->c_str(), 0777) != 0 && errno != EEXIST) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot make the folder ", EscapeBytes(*flags_.dump_dir)));
    }
    for (OutputFile& file : more) files_.push_back(std::move(file));
    return WriteAll(files_);
  }

 private:
  const CompileFlags& flags_;
  std::vector<OutputFile> files_;
  std::vector<PassTime> times_;
};

// The plan of a model that has been built, proved unless that is not wanted.
absl::StatusOr<Plan> CompileWith(const Graph& graph, const ModelSource& source,
                                 CompileOptions options, Dumps* dumps) {
  if (dumps->wanted()) dumps->Dump("logical", PrintGraph(graph));
  // Presets go through the same passes in every test.
  options.run.check = !source.preset;
  options.fold_layers = !dumps->shows_forms();
  options.run.after_pass = [dumps](const FinishedPass& pass) { return dumps->Take(pass); };
  return Compile(graph, source.dims, options);
}

// Prints the plan's notes; then proves it or, where no proof is asked for, makes sure that it can
// be read again.
int Accept(const CompileFlags& flags, Dumps* dumps, Plan* plan) {
  PrintNotes(plan->notes);
  if (flags.no_verify) {
    const absl::Status readable = CheckPlan(*plan);
    return readable.ok() ? kExitOk : Fail(readable, kExitMismatch);
  }
  const int64_t begin = NowNs();
  const int code = ProveOrExplain(plan);
  dumps->times().push_back({"proof", NowNs() - begin});
  return code;
}

// Only now is it known which files the folder for dumps gets.
int Write(const CompileFlags& flags, std::vector<OutputFile> results, Dumps* dumps) {
  const Diagnostics errors = CheckPaths(InputsOf(flags), dumps->Paths());
  if (!errors.empty()) return Refuse(errors, {}, kCommand);
  if (flags.timing) std::cerr << TimingText(dumps->times());
  const absl::Status written = dumps->Write(std::move(results));
  return written.ok() ? kExitOk : Fail(written, kExitFailed);
}

// Machine and strategy, without what depends on a configuration. The exit code where they fail.
absl::optional<int> LoadOptions(const CompileFlags& flags, CompileOptions* options) {
  options->limit_memory = flags.cluster.has_value();
  absl::StatusOr<Machine> machine = LoadMachine(flags.cluster.value_or(kDefaultMachine));
  if (!machine.ok()) return Fail(machine.status(), kExitBadModel);
  options->machine = *std::move(machine);
  const bool by_classes = flags.parallel.strategy.value_or("") == kClassStrategy;
  absl::StatusOr<StrategySpec> strategy =
      by_classes ? DefaultStrategy() : LoadStrategy(flags.parallel.strategy);
  if (!strategy.ok()) return Fail(strategy.status(), kExitBadModel);
  options->strategy = *std::move(strategy);
  return absl::nullopt;
}

int CompileAndWrite(const ModelSource& source, CompileOptions options, const CheckedConfig& checked,
                    const CompileFlags& flags) {
  const ParallelConfig& config = options.parallel;
  options.flags = OptionsOf(source, config, checked, flags);
  std::vector<std::string> notes;
  absl::StatusOr<Graph> graph =
      BuildGraph(source, config, flags.parallel.vocab_multiple.value_or(1), &notes);
  if (!graph.ok()) return Fail(graph.status(), kExitBadModel);
  PrintNotes(notes);
  absl::optional<std::string> named = flags.parallel.strategy;
  const absl::StatusOr<std::string> chosen = LayOutIfUnnamed(*graph, source.dims, &named, &options);
  if (!chosen.ok()) return FailToCompile(chosen.status());
  if (!chosen->empty()) PrintNotes({*chosen});
  for (auto& option : OptionsOf(named, options.strategy)) {
    options.flags.push_back(std::move(option));
  }
  Dumps dumps(flags);
  absl::StatusOr<Plan> plan = CompileWith(*graph, source, std::move(options), &dumps);
  if (absl::IsCancelled(plan.status())) return Write(flags, {}, &dumps);
  if (!plan.ok()) return FailToCompile(plan.status());
  if (const int code = Accept(flags, &dumps, &*plan); code != kExitOk) return code;
  absl::Status missing;
  std::vector<OutputFile> results =
      ResultsOf(*plan, flags, flags.timing ? dumps.times() : std::vector<PassTime>(), &missing);
  const bool tell = flags.output.has_value() && !flags.json_is_out && StdoutIsFree(results);
  int code = Write(flags, std::move(results), &dumps);
  if (code == kExitOk && tell) {
    code = Finish(SummaryText(*plan, *flags.output, flags.cluster.has_value()));
  }
  return code == kExitOk && !missing.ok() ? Fail(missing, kExitFailed) : code;
}

// Prints what has been found, and compiles the fastest plan where results of it are asked for.
int SearchAndWrite(const ModelSource& source, CompileOptions options, CompileFlags flags) {
  SearchRequest request = SearchFor(source, flags.parallel, options.parallel, options);
  request.budget = flags.budget.value_or(request.budget);
  const absl::StatusOr<FoundPlans> found = SearchPlans(request);
  if (!found.ok()) return FailToCompile(found.status());
  const FoundPlan& best = found->ranked.front();
  const std::vector<RejectedPlan> why_not = ExplainNeighbours(request, *found);
  const bool json = flags.report.value_or("text") == "json";
  if (flags.output.value_or("") != "-") {
    const absl::Status written =
        WriteStdout(json ? FoundPlansJson(*found, why_not, options.machine)
                         : FoundPlansText(*found, why_not, options.machine));
    if (!written.ok()) return Fail(written, kExitFailed);
  }
  flags.report.reset();
  flags.json_is_out = json;
  if (!flags.output && !flags.dot && !flags.svg && !flags.dump_dir) return kExitOk;
  options.parallel = best.config;
  return CompileAndWrite(source, options, CheckConfig(best.config, source.dims), flags);
}

int Estimate(const ModelSource& source, const CompileOptions& options, const CompileFlags& flags) {
  const SearchRequest request = SearchFor(source, flags.parallel, options.parallel, options);
  const absl::StatusOr<PlanEstimate> estimate = EstimatePlan(request);
  if (!estimate.ok()) return FailToCompile(estimate.status());
  const bool json = flags.report.value_or("text") == "json";
  return Finish(json ? EstimateJson(*estimate, options.machine)
                     : EstimateText(*estimate, options.machine));
}

int Main(const Words& arguments) {
  Flags parser(About());
  CompileFlags flags;
  AddFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  CheckWords(&flags.parallel, &parsed);
  CheckPathsOf(flags, &parsed);
  CheckSearchFlags(flags, &parsed);
  CheckEstimateFlags(flags, &parsed);
  if (flags.models.size() != 1) return Refuse(parsed.errors, {}, kCommand);
  absl::StatusOr<ModelSource> source = LoadModel(flags.models[0]);
  if (!source.ok()) {
    Fail(source.status(), kExitBadModel);
    return parsed.errors.empty() ? kExitBadModel : Refuse(parsed.errors, {}, kCommand);
  }
  PrintNotes(source->notes);
  const ParallelConfig config = ConfigFor(*source, flags.parallel);
  CompileOptions options;
  options.parallel = config;
  if (flags.search) {
    if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kCommand);
    if (const auto code = LoadOptions(flags, &options)) return *code;
    return SearchAndWrite(*source, std::move(options), std::move(flags));
  }
  const CheckedConfig checked = CheckConfig(config, source->dims);
  Diagnostics violations = checked.violations;
  violations.Append(CheckGraphSizes(*source, config));
  violations = WithoutRulesOf(parsed.bad_flags, violations);
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCommand);
  }
  if (const auto code = LoadOptions(flags, &options)) return *code;
  if (flags.estimate) return Estimate(*source, options, flags);
  return CompileAndWrite(*source, std::move(options), checked, flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
