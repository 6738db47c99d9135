#include "tools/cli/compile_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontends/weights/adapter_targets.h"
#include "graph/base/file.h"
#include "graph/ir/step_names.h"
#include "graph/types/machine.h"
#include "passes/compile.h"
#include "tools/cli/model_source.h"
#include "tools/cli/strategy_source.h"

namespace mgc {
namespace {

void AddResultFlags(Flags* flags, CompileFlags* out) {
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
  flags->Text("--html", "FILE",
              "a page for a browser: what mgc-plan html writes; with --auto, the plans that were "
              "found",
              &out->html);
  flags->Text("--plot", "FILE",
              "with --auto, time against memory of the plans that were found, as a picture (SVG)",
              &out->plot);
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
}

void AddSearchFlags(Flags* flags, CompileFlags* out) {
  flags->Section("Search");
  flags->Switch("--auto",
                "find the fastest plan that fits: sizes of the mesh and its order, chunks, "
                "micro-batch, ZeRO, sequence parallelism, the layers of every stage and what each "
                "computes again, and rows for dims of unknown names; but for what flags fix",
                &out->search);
  flags->Switch(
      "--estimate-only",
      "write no plan: say how long a step is, whether it fits into a device of --cluster, "
      "where it needs most, and which single changes would make it fit",
      &out->estimate);
  flags->Integer(
      "--auto-budget",
      "plans to compile in the search, at most (default 24); as many to climb from the best over "
      "their neighbours",
      {1, 1 << 20}, "F3", &out->budget);
  flags->Switch("--auto-precision",
                "let the search choose between f32 and bf16, too: what is computed changes, so it "
                "does not without being asked",
                &out->search_precision);
}

// What follows from a plan: a graph has none of it.
std::vector<NamedPath> ViewsAskedFor(const CompileFlags& flags) {
  std::vector<NamedPath> views;
  if (flags.report) views.push_back({"--report", "-"});
  if (flags.dot) views.push_back({"--dot", *flags.dot});
  if (flags.svg) views.push_back({"--svg", *flags.svg});
  if (flags.html) views.push_back({"--html", *flags.html});
  if (flags.plot) views.push_back({"--plot", *flags.plot});
  return views;
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
  if (flags.search_precision && !flags.search) {
    parsed->errors.Add(
        {"F7", "--auto-precision opens a choice of a search, and none is asked for", "--auto too"});
  }
  if (flags.search_precision && (flags.parallel.bf16 || flags.parallel.fp16)) {
    parsed->errors.Add({"F7",
                        absl::StrCat("--auto-precision leaves open what ",
                                     flags.parallel.bf16 ? "--bf16" : "--fp16", " fixes"),
                        "one of the two"});
  }
  if (flags.plot && !flags.search) {
    parsed->errors.Add(
        {"F7", "--plot draws what a search finds, and none is asked for", "--auto too"});
  }
  if (flags.search && flags.parallel.strategy.value_or("") == kClassStrategy) {
    parsed->errors.Add({"F7", "--strategy classes chooses for one configuration, --auto among many",
                        "--auto alone, which chooses rows where it knows no names, or --strategy "
                        "FILE"});
  }
}

constexpr absl::string_view kNextTokenWords[] = {"whole", "prompt", "token"};

// What follows from a plan that is not to be made.
void CheckEstimateFlags(const CompileFlags& flags, ParsedFlags* parsed) {
  const bool makes = flags.output || flags.dot || flags.svg || flags.html || flags.dump_dir ||
                     flags.stop_after || flags.search;
  if (flags.estimate && makes) {
    parsed->errors.Add({"F7", "--estimate-only makes no plan, nor does it search for one",
                        "--estimate-only alone, or with --report json"});
  }
}

// F7: what an adapter is like, where there is none.
void CheckAdapterFlags(const CompileFlags& flags, ParsedFlags* parsed) {
  const std::vector<std::string>& bad = parsed->bad_flags;
  const bool has_rank =
      flags.lora_rank || std::find(bad.begin(), bad.end(), "--lora-rank") != bad.end();
  const auto check = [&](const char* flag, bool given) {
    if (!given || has_rank) return;
    parsed->errors.Add(
        {"F7", absl::StrCat(flag, " is of adapters, and none are asked for"), "--lora-rank N too"});
  };
  check("--lora-alpha", flags.lora_alpha.has_value());
  check("--lora-targets", flags.lora_targets.has_value());
}

void AskForEvaluation(const CompileFlags& flags, ModelSource* source, Diagnostics* violations) {
  source->evaluated = flags.eval_only;
  if (!flags.eval_only || !flags.next_token) return;
  violations->Add({"F7", "--eval-only asks for losses, --next-token for logits", "one of both"});
}

// F7: weights of a model that is trained.
void AskForWholeNumbers(const CompileFlags& flags, ModelSource* source, Diagnostics* violations) {
  if (!flags.int8) return;
  source->quantized = true;
  if (flags.next_token || flags.eval_only) return;
  const char* const asked = "--next-token or --eval-only too";
  if (!source->graph.has_value()) {
    violations->Add({"F7", "--int8 quantizes weights that nothing trains", asked});
    return;
  }
  for (const GraphInput& input : source->graph->inputs()) {
    if (input.kind != InputKind::kParam || !IsTrained(input.attrs)) continue;
    violations->Add({"F7",
                     absl::StrCat("--int8 quantizes weights that nothing trains, and the graph "
                                  "trains %",
                                  EscapeBytes(source->graph->value(input.value).name)),
                     asked});
    return;
  }
}

void AskForAdapter(const CompileFlags& flags, ModelSource* source, Diagnostics* violations) {
  if (!flags.lora_rank && !flags.lora_targets) return;
  if (!source->config.has_value()) {
    violations->Add({"F7",
                     "--lora-rank: a graph in text writes its own adapters, beside weights "
                     "with train=0",
                     "without it"});
    return;
  }
  std::vector<std::string> wanted = DefaultAdapterTargets(*source->config);
  if (flags.lora_targets) wanted = absl::StrSplit(*flags.lora_targets, ',');
  AdapterTargets targets = FindAdapterTargets(*source->config, wanted);
  for (Diagnostic problem : targets.problems) {
    problem.label = "F7";
    problem.text = absl::StrCat("--lora-targets: ", problem.text);
    violations->Add(std::move(problem));
  }
  if (!flags.lora_rank || !targets.problems.empty()) return;
  AdapterOptions& adapter = source->options.adapter.emplace();
  adapter.rank = *flags.lora_rank;
  adapter.alpha = flags.lora_alpha.value_or(adapter.alpha);
  adapter.layers = std::move(targets.layers);
  source->adapter_modules = std::move(targets.modules);
}

// F7: more tokens at once than `source`, asked for its next token, has room for.
void CheckLengthFlags(const CompileFlags& flags, const ModelSource& source,
                      Diagnostics* violations) {
  const int64_t seq = flags.parallel.seq_length.value_or(source.seq_length);
  const absl::Status length = CheckAskedLength(source.options, seq);
  if (length.ok()) return;
  violations->Add({"F7", std::string(length.message()),
                   source.options.next_token == NextToken::kToken
                       ? "without --seq-length"
                       : absl::StrCat("--seq-length ", source.options.kept)});
}

void AskForNextToken(const CompileFlags& flags, ModelSource* source, Diagnostics* violations) {
  if (flags.cache_length && flags.next_token.value_or("whole") == "whole") {
    violations->Add({"F7", "--cache-length is of keys and values that are kept",
                     "--next-token prompt or token"});
  }
  if (!flags.next_token) return;
  ModelOptions& options = source->options;
  options.next_token = *flags.next_token == "whole"    ? NextToken::kWhole
                       : *flags.next_token == "prompt" ? NextToken::kPrompt
                                                       : NextToken::kToken;
  std::string why = "a graph in text is asked by its own reports";
  if (source->config.has_value()) {
    options.kept = flags.cache_length.value_or(source->config->max_positions);
    why = std::string(CheckModelOptions(*source->config, options).message());
  }
  if (options.next_token == NextToken::kToken) source->seq_length = 1;
  if (why.empty()) return CheckLengthFlags(flags, *source, violations);
  violations->Add({"F7", absl::StrCat("--next-token: ", why), "without it"});
}

}  // namespace

void AddModelFlags(Flags* flags, CompileFlags* out) {
  flags->Section("Model");
  flags->Switch("--reset-attention-mask",
                "tokens see those of their own document alone; mgc-run --eod says what ends one",
                &out->reset_attention_mask);
  flags->Switch("--reset-position-ids", "learned positions begin anew with each document",
                &out->reset_position_ids);
  flags->Choice("--next-token", kNextTokenWords,
                "for mgc-generate, nothing is trained: a step gives the logits behind one row of "
                "each sample, from the whole text, or from a prompt whose keys and values are kept "
                "and then token by token",
                &out->next_token);
  flags->Integer("--cache-length", "tokens whose keys and values are kept (default: all positions)",
                 {1, int64_t{1} << 30}, "F3", &out->cache_length);
  flags->Switch("--eval-only",
                "for mgc-run --eval-only, nothing is trained: a step is an evaluation, without "
                "gradients and what an optimizer keeps",
                &out->eval_only);
  flags->Switch("--int8",
                "hold weights of products as whole numbers of 8 bits, with a scale for each "
                "channel; of models that nothing trains",
                &out->int8);
  flags->Integer("--lora-rank",
                 "put low-rank adapters of this rank beside linear layers (LoRA) and train them "
                 "alone, the model is kept",
                 {1, 1 << 16}, "F3", &out->lora_rank);
  flags->Real("--lora-alpha", "what adapters give is multiplied by this over the rank (default 8)",
              1e-6, 1e6, &out->lora_alpha);
  flags->Text("--lora-targets", "NAME,NAME...",
              "the layers, as the family's files call them: q_proj,v_proj (llama's default), or "
              "all-linear",
              &out->lora_targets);
}

Diagnostics AskOfModel(const CompileFlags& flags, ModelSource* source) {
  Diagnostics violations;
  const auto ask = [&](const char* flag, bool given, bool ModelOptions::*option) {
    if (!given) return;
    ModelOptions asked;
    asked.*option = source->options.*option = true;
    std::string why = "a graph in text says itself what its attention sees";
    if (source->config.has_value()) {
      why = std::string(CheckModelOptions(*source->config, asked).message());
    }
    if (!why.empty()) violations.Add({"F7", absl::StrCat(flag, ": ", why), "without it"});
  };
  ask("--reset-attention-mask", flags.reset_attention_mask, &ModelOptions::mask_documents);
  ask("--reset-position-ids", flags.reset_position_ids, &ModelOptions::restart_positions);
  AskForNextToken(flags, source, &violations);
  AskForEvaluation(flags, source, &violations);
  AskForWholeNumbers(flags, source, &violations);
  AskForAdapter(flags, source, &violations);
  return violations;
}

CommandText AboutCompile() {
  return {
      kCompileCommand,
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

void AddCompileFlags(Flags* flags, CompileFlags* out) {
  flags->Arguments(1, 1, &out->models);
  AddResultFlags(flags, out);
  AddSearchFlags(flags, out);
  AddMeshFlags(flags, &out->parallel);
  flags->Text(
      "--cluster", "NAME",
      "the machines: a preset (cpu-threads, a100x8, h100x8, h200x8, b200x8) or a file; then a "
      "plan that needs more memory than a device has is refused",
      &out->cluster);
  AddScheduleFlags(flags, &out->parallel);
  AddTrainingFlags(flags, &out->parallel);
  AddModelFlags(flags, out);
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

void CheckCompileFlags(const CompileFlags& flags, ParsedFlags* parsed) {
  CheckPathsOf(flags, parsed);
  CheckSearchFlags(flags, parsed);
  CheckEstimateFlags(flags, parsed);
  CheckAdapterFlags(flags, parsed);
}

}  // namespace mgc
