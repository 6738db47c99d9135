// mgc-compile: a model and a configuration in, a plan out.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "graph/text/printer.h"
#include "graph/types/machine.h"
#include "graph/weights/adapters.h"
#include "passes/compile.h"
#include "passes/config/check_config.h"
#include "passes/config/config_flags.h"
#include "passes/form_text.h"
#include "tools/advice/estimate_plan.h"
#include "tools/advice/why_not.h"
#include "tools/cli/command.h"
#include "tools/cli/compile_flags.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/plan_search.h"
#include "tools/cli/proof.h"
#include "tools/cli/strategy_source.h"
#include "tools/cli/svg.h"
#include "tools/views/drawings/dot.h"
#include "tools/views/found_plans.h"
#include "tools/views/page/front_plot.h"
#include "tools/views/page/page.h"
#include "tools/views/page/search_page.h"
#include "tools/views/show.h"
#include "tools/views/summary.h"
#include "tools/views/timing.h"

namespace mgc {
namespace {

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
  if (flags.reset_attention_mask) options.push_back({"--reset-attention-mask", ""});
  if (flags.reset_position_ids) options.push_back({"--reset-position-ids", ""});
  if (flags.next_token) options.push_back({"--next-token", *flags.next_token});
  if (flags.cache_length) options.push_back({"--cache-length", absl::StrCat(*flags.cache_length)});
  if (flags.eval_only) options.push_back({"--eval-only", ""});
  if (flags.int8) options.push_back({"--int8", ""});
  if (const auto& adapter = source.options.adapter; adapter.has_value()) {
    const auto add = [&options](const char* name, std::string value) {
      options.push_back({absl::StrCat("--", name), std::move(value)});
    };
    add(kAdapterRank, absl::StrCat(adapter->rank));
    add(kAdapterAlpha, JsonNumber(adapter->alpha));
    add(kAdapterTargets, absl::StrJoin(source.adapter_modules, ","));
  }
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
  if (flags.html) {
    absl::StatusOr<std::string> page = PlanPage(plan);
    missing->Update(page.status());
    if (page.ok()) files.push_back({*flags.html, *std::move(page)});
  }
  if (flags.report) {
    files.push_back({"-", flags.ReportsJson() ? ShowJson(plan, times) : ShowText(plan)});
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
  if (!errors.empty()) return Refuse(errors, {}, kCompileCommand);
  if (flags.timing) std::cerr << TimingText(dumps->times());
  const absl::Status written = dumps->Write(std::move(results));
  return written.ok() ? kExitOk : Fail(written, kExitFailed);
}

// What follows from a plan that has been accepted, beside `found`.
int WriteResults(const Plan& plan, const CompileFlags& flags, std::vector<OutputFile> found,
                 Dumps* dumps) {
  absl::Status missing;
  std::vector<OutputFile> results =
      ResultsOf(plan, flags, flags.timing ? dumps->times() : std::vector<PassTime>(), &missing);
  std::move(found.begin(), found.end(), std::back_inserter(results));
  const bool tell = flags.output.has_value() && !flags.json_is_out && StdoutIsFree(results);
  int code = Write(flags, std::move(results), dumps);
  if (code == kExitOk && tell) {
    code = Finish(SummaryText(plan, *flags.output, flags.cluster.has_value()));
  }
  return code == kExitOk && !missing.ok() ? Fail(missing, kExitFailed) : code;
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

// `found`: what is written with what follows from the plan, all or none.
// What a search leaves to the compilation of its answer.
struct SearchResults {
  std::vector<OutputFile> pages;
  bool has_rows = false;  // options.strategy was found
};

int CompileAndWrite(const ModelSource& source, CompileOptions options, const CheckedConfig& checked,
                    const CompileFlags& flags, SearchResults found = {}) {
  const ParallelConfig& config = options.parallel;
  options.flags = OptionsOf(source, config, checked, flags);
  std::vector<std::string> notes;
  absl::StatusOr<Graph> graph =
      BuildGraph(source, config, flags.parallel.vocab_multiple.value_or(1), &notes);
  if (!graph.ok()) return Fail(graph.status(), kExitBadModel);
  PrintNotes(notes);
  absl::optional<std::string> named = flags.parallel.strategy;
  const absl::StatusOr<std::string> chosen =
      found.has_rows ? NameFound(options.strategy, &named)
                     : LayOutIfUnnamed(*graph, source.dims, &named, &options);
  if (!chosen.ok()) return FailToCompile(chosen.status());
  if (!chosen->empty()) PrintNotes({*chosen});
  for (auto& option : OptionsOf(named, options.strategy)) {
    options.flags.push_back(std::move(option));
  }
  Dumps dumps(flags);
  absl::StatusOr<Plan> plan = CompileWith(*graph, source, std::move(options), &dumps);
  if (absl::IsCancelled(plan.status())) return Write(flags, std::move(found.pages), &dumps);
  if (!plan.ok()) return FailToCompile(plan.status());
  if (const int code = Accept(flags, &dumps, &*plan); code != kExitOk) return code;
  return WriteResults(*plan, flags, std::move(found.pages), &dumps);
}

// The page and the picture of what has been found, where they are asked for.
std::vector<OutputFile> PagesOf(const SearchAnswer& answer, const CompileFlags& flags) {
  std::vector<OutputFile> pages;
  if (flags.html) pages.push_back({*flags.html, SearchPage(answer)});
  if (flags.plot) pages.push_back({*flags.plot, FrontPicture(answer)});
  return pages;
}

// Prints what has been found, and compiles the fastest plan where results of it are asked for.
int SearchAndWrite(const ModelSource& source, CompileOptions options, CompileFlags flags) {
  SearchRequest request = SearchFor(source, flags.parallel, options.parallel, options);
  request.budget = flags.budget.value_or(request.budget);
  request.fixed.precision = !flags.search_precision;
  absl::StatusOr<FoundPlans> found = SearchPlans(request);
  if (!found.ok()) return FailToCompile(found.status());
  SearchAnswer answer = {source.name,    options.machine,   request.fixed,
                         request.budget, *std::move(found), {}};
  answer.why_not = ExplainNeighbours(request, answer.found);
  std::vector<OutputFile> pages = PagesOf(answer, flags);
  const bool json = flags.ReportsJson();
  if (flags.output.value_or("") != "-" && StdoutIsFree(pages)) {
    const absl::Status written =
        WriteStdout(json ? FoundPlansJson(answer) : FoundPlansText(answer));
    if (!written.ok()) return Fail(written, kExitFailed);
  }
  flags.report.reset();
  flags.html.reset();
  flags.json_is_out = json;
  if (!flags.output && !flags.dot && !flags.svg && !flags.dump_dir) {
    const absl::Status written = WriteAll(pages);
    return written.ok() ? kExitOk : Fail(written, kExitFailed);
  }
  const FoundPlan& best = answer.found.ranked.front();
  options.parallel = best.config;
  if (best.strategy.has_value()) options.strategy = *best.strategy;
  return CompileAndWrite(source, options, CheckConfig(options.parallel, source.dims), flags,
                         {std::move(pages), best.strategy.has_value()});
}

int Estimate(const ModelSource& source, const CompileOptions& options, const CompileFlags& flags) {
  const SearchRequest request = SearchFor(source, flags.parallel, options.parallel, options);
  const absl::StatusOr<PlanEstimate> estimate = EstimatePlan(request);
  if (!estimate.ok()) return FailToCompile(estimate.status());
  return Finish(flags.ReportsJson() ? EstimateJson(*estimate, options.machine)
                                    : EstimateText(*estimate, options.machine));
}

int Main(const Words& arguments) {
  Flags parser(AboutCompile());
  CompileFlags flags;
  AddCompileFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  CheckWords(&flags.parallel, &parsed);
  CheckCompileFlags(flags, &parsed);
  if (flags.models.size() != 1) return Refuse(parsed.errors, {}, kCompileCommand);
  absl::StatusOr<ModelSource> source = LoadModel(flags.models[0]);
  if (!source.ok()) {
    Fail(source.status(), kExitBadModel);
    return parsed.errors.empty() ? kExitBadModel : Refuse(parsed.errors, {}, kCompileCommand);
  }
  PrintNotes(source->notes);
  parsed.errors.Append(AskOfModel(flags, &*source));
  const ParallelConfig config = ConfigFor(*source, flags.parallel);
  CompileOptions options;
  options.parallel = config;
  if (flags.search) {
    if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kCompileCommand);
    if (const auto code = LoadOptions(flags, &options)) return *code;
    return SearchAndWrite(*source, std::move(options), std::move(flags));
  }
  const CheckedConfig checked = CheckConfig(config, source->dims);
  Diagnostics violations = checked.violations;
  violations.Append(CheckGraphSizes(*source, config));
  violations = WithoutRulesOf(parsed.bad_flags, violations);
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCompileCommand);
  }
  if (const auto code = LoadOptions(flags, &options)) return *code;
  if (flags.estimate) return Estimate(*source, options, flags);
  return CompileAndWrite(*source, std::move(options), checked, flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
