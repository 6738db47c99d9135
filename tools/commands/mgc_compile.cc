// mgc-compile: a model and a configuration in, a plan out.

#include <sys/stat.h>

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
#include "passes/form_text.h"
#include "tools/cli/command.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/proof.h"
#include "tools/cli/strategy_source.h"
#include "tools/cli/svg.h"
#include "tools/views/drawings/dot.h"
#include "tools/views/show.h"
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
  flags->Choice("--report", {"text", "json"}, "print what mgc-plan show does", &out->report);
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
  if (results.empty() && !flags.dump_dir) {
    parsed->errors.Add({"F6", "no result is asked for", "-o PLAN"});
  }
  parsed->errors.Append(CheckPaths(InputsOf(flags), results));
}

// The configuration as flags, to be found in the plan.
PlanOptions OptionsOf(const ModelSource& source, const ParallelConfig& config,
                      const CheckedConfig& checked, const CompileFlags& flags) {
  PlanOptions options = {{"model", source.name},
                         {"--world-size", absl::StrCat(config.world_size)},
                         {"--tp", absl::StrCat(config.tp)},
                         {"--pp", absl::StrCat(config.pp)},
                         {"--vp", absl::StrCat(checked.vp)},
                         {"--order", config.order},
                         {"--micro-batch-size", absl::StrCat(config.micro_batch_size)},
                         {"--global-batch-size", absl::StrCat(config.global_batch_size)},
                         {"--seq-length", absl::StrCat(config.seq_length)},
                         {"--schedule", std::string(ToString(config.schedule))},
                         {"--recompute", std::string(ToString(config.recompute))},
                         {"--zero", absl::StrCat(config.zero)}};
  if (config.schedule == ScheduleKind::kInterleaved) {
    options.push_back({"--group-size", absl::StrCat(checked.group_size)});
  }
  if (config.zero_group > 0) {
    options.push_back({"--zero-group", absl::StrCat(config.zero_group)});
  }
  if (config.split_products > 1) {
    options.push_back({"--split-products", absl::StrCat(config.split_products)});
  }
  if (!config.reshard_after_forward) options.push_back({"--no-reshard-after-forward", ""});
  if (config.sequence_parallel) options.push_back({"--sequence-parallel", ""});
  if (config.compute_type == DType::kBF16) options.push_back({"--bf16", ""});
  if (config.compute_type == DType::kF16) options.push_back({"--fp16", ""});
  if (config.gradient_sums != DType::kF32) {
    options.push_back({"--grad-reduce-dtype", std::string(NameOf(config.gradient_sums))});
  }
  if (config.layout.layout) options.push_back({"--pipeline-layout", *config.layout.layout});
  const auto& [layout, first, last, embedding, loss, cuts] = config.layout;
  if (first) options.push_back({"--decoder-first-pipeline-num-layers", absl::StrCat(*first)});
  if (last) options.push_back({"--decoder-last-pipeline-num-layers", absl::StrCat(*last)});
  if (embedding) options.push_back({"--account-for-embedding-in-pipeline-split", ""});
  if (loss) options.push_back({"--account-for-loss-in-pipeline-split", ""});
  if (!cuts.empty()) options.push_back({"--cuts", absl::StrJoin(cuts, ",")});
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
  void Dump(absl::string_view name, const std::string& text) {
    if (!flags_.dump_dir) return;
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
  dumps->Dump("logical", PrintGraph(graph));
  // Presets go through the same passes in every test.
  options.run.check = !source.preset;
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

int CompileAndWrite(const ModelSource& source, const ParallelConfig& config,
                    const CheckedConfig& checked, const CompileFlags& flags) {
  CompileOptions options;
  options.parallel = config;
  options.limit_memory = flags.cluster.has_value();
  options.flags = OptionsOf(source, config, checked, flags);
  absl::StatusOr<Machine> machine = LoadMachine(flags.cluster.value_or(kDefaultMachine));
  if (!machine.ok()) return Fail(machine.status(), kExitBadModel);
  options.machine = *std::move(machine);
  const bool by_classes = flags.parallel.strategy.value_or("") == kClassStrategy;
  absl::StatusOr<StrategySpec> strategy =
      by_classes ? DefaultStrategy() : LoadStrategy(flags.parallel.strategy);
  if (!strategy.ok()) return Fail(strategy.status(), kExitBadModel);
  options.strategy = *std::move(strategy);
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
  const int code = Write(flags, std::move(results), &dumps);
  return code == kExitOk && !missing.ok() ? Fail(missing, kExitFailed) : code;
}

int Main(const Words& arguments) {
  Flags parser(About());
  CompileFlags flags;
  AddFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  CheckWords(&flags.parallel, &parsed);
  CheckPathsOf(flags, &parsed);
  if (flags.models.size() != 1) return Refuse(parsed.errors, {}, kCommand);
  absl::StatusOr<ModelSource> source = LoadModel(flags.models[0]);
  if (!source.ok()) {
    Fail(source.status(), kExitBadModel);
    return parsed.errors.empty() ? kExitBadModel : Refuse(parsed.errors, {}, kCommand);
  }
  PrintNotes(source->notes);
  const ParallelConfig config = ConfigFor(*source, flags.parallel);
  const CheckedConfig checked = CheckConfig(config, source->dims);
  Diagnostics violations = checked.violations;
  violations.Append(CheckGraphSizes(*source, config));
  violations = WithoutRulesOf(parsed.bad_flags, violations);
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCommand);
  }
  return CompileAndWrite(*source, config, checked, flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
