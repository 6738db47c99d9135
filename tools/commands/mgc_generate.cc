// mgc-generate: texts that a trained model goes on with.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "frontends/tokenize/read_tokenizer.h"
#include "frontends/tokenize/text_tokenizer.h"
#include "frontends/tokenize/tokenizer.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "runtime/generate/generator.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/weights/import_weights.h"
#include "tools/cli/command.h"
#include "tools/cli/instruction_set.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/proof.h"
#include "tools/devices/devices.h"
#include "tools/launch/launcher.h"
#include "tools/launch/world.h"
#include "tools/models/model_dir.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-generate";
constexpr char kBytes[] = "bytes";
constexpr int64_t kMostTokens = 16;  // where no flag says how many

struct GenerateFlags {
  Words plans;
  absl::optional<std::string> load, init, init_adapter, tokenizer, device, instruction_set,
      end_token;
  std::vector<std::string> prompts, prompt_files, prompt_ids;
  absl::optional<int64_t> most_tokens, top_k, seed, workers, nproc;
  absl::optional<double> temperature, top_p;
  bool json = false;
};

CommandText About() {
  return {
      kCommand,
      "PLAN [TOKEN-PLAN]",
      "let a trained model go on with texts",
      {"mgc-compile llama.json --next-token whole -o next.plan",
       "mgc-generate next.plan --load RUN --tokenizer tokenizer.json --prompt 'In the "
       "beginning'",
       "mgc-generate next.plan --load RUN --tokenizer tokenizer.json --prompt Lo "
       "--temperature 0.8 --top-p 0.9"},
      "PLAN is one of mgc-compile --next-token whole; or of --next-token prompt, and TOKEN-PLAN "
      "of --next-token\ntoken, with the same layout: keys and values are kept then. The text is "
      "that of every plan of the\nmodel, where the logits of two tokens do not differ by their "
      "rounding alone."};
}

void AddFlags(Flags* flags, GenerateFlags* out) {
  flags->Arguments(1, 2, &out->plans);
  flags->Section("Model");
  flags->Text("--load", "DIR", "a checkpoint, or a run's folder of them for the last", &out->load);
  flags->Text("--init", "DIR", "a model directory of safetensors files, in place of a checkpoint",
              &out->init);
  flags->Text("--init-adapter", "DIR",
              "with --init, an adapter of peft's for a plan of --lora-rank", &out->init_adapter);
  flags->Text("--tokenizer", "FILE|DIR|bytes", "a tokenizer.json, or a folder with one",
              &out->tokenizer);
  flags->Section("Texts");
  flags->Texts("--prompt", "TEXT", "what to go on with; several are one batch", &out->prompts);
  flags->Texts("--prompt-file", "FILE", "the same from a file, - for stdin", &out->prompt_files);
  flags->Texts("--prompt-ids", "N,N...", "the same as tokens, without a tokenizer",
               &out->prompt_ids);
  flags->Integer("--max-new-tokens",
                 absl::StrCat("tokens behind a prompt, at most (default ", kMostTokens, ")"),
                 {0, int64_t{1} << 30}, "F3", &out->most_tokens);
  flags->Text("--end-token", "TOKEN", "ends a text (default: the tokenizer's end of a document)",
              &out->end_token);
  flags->Section("Sampling");
  flags->Real("--temperature", "0 (the default): the most probable token", 0, 1e6,
              &out->temperature);
  flags->Integer("--top-k", "draw among the K most probable (default 0: all)",
                 {0, int64_t{1} << 30}, "F3", &out->top_k);
  flags->Real("--top-p", "draw among the most probable that together have P (default 1)", 1e-9, 1,
              &out->top_p);
  flags->Integer("--seed", "of the first prompt, one more for each other (default 1)",
                 {0, int64_t{1} << 62}, "F3", &out->seed);
  flags->Section("Execution");
  flags->Choice("--device", {kCpuDevice, kCudaDevice}, "what the ranks are on (default cpu)",
                &out->device);
  flags->Integer("--workers", "threads of a process (default: one for each processor)",
                 {1, 1 << 12}, "F3", &out->workers);
  flags->Integer("--nproc", "processes that share the ranks (default 1)", {1, 1 << 16}, "F3",
                 &out->nproc);
  AddInstructionSetFlag(flags, &out->instruction_set);
  flags->Section("Results");
  flags->Switch("--json", "a line of JSON for each prompt", &out->json);
}

Diagnostics CheckFlags(const GenerateFlags& flags) {
  Diagnostics errors;
  if (flags.load.has_value() == flags.init.has_value()) {
    errors.Add(flags.load ? Diagnostic{"F7", "--load and --init are both given", "one of both"}
                          : Diagnostic{"F6", "a model without weights says nothing",
                                       "--load DIR, or --init DIR"});
  }
  if (flags.init_adapter && !flags.init) {
    errors.Add({"F7", "--init-adapter is given without the model that it stands beside",
                "--init DIR too"});
  }
  const bool has_text = !flags.prompts.empty() || !flags.prompt_files.empty();
  if ((has_text || flags.end_token) && !flags.tokenizer) {
    errors.Add({"F6", "--tokenizer is missing", "--tokenizer FILE, or bytes"});
  }
  if (!has_text && flags.prompt_ids.empty()) {
    errors.Add({"F6", "there is nothing to go on with",
                "--prompt TEXT, --prompt-file FILE, or --prompt-ids N,N"});
  }
  if (!flags.temperature.value_or(0) && (flags.top_k || flags.top_p || flags.seed)) {
    errors.Add({"F7", "--top-k, --top-p and --seed are of tokens that are drawn",
                "--temperature 1, or none of them"});
  }
  return errors;
}

// A command line that has been read, with what belongs to it.
struct Command {
  GenerateFlags flags;
  absl::optional<Plan> plan, token_plan;
  std::unique_ptr<TextTokenizer> tokenizer;
  std::vector<std::string> prompts;
  std::vector<GenerateRequest> requests;
  GenerateOptions options;
  RunDevice device;
  std::string folder;             // of the checkpoint, or
  absl::optional<ModelDir> init;  // the weights
};

// The tokens of `1,22,3`.
absl::StatusOr<std::vector<int32_t>> TokensOf(const std::string& text) {
  std::vector<int32_t> tokens;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(word, &tokens.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("--prompt-ids ", EscapeBytes(text), ": `",
                                                     EscapeBytes(word),
                                                     "` is no number of a token"));
    }
  }
  return tokens;
}

void AddRequest(const std::string& prompt, std::vector<int32_t> tokens, Command* command) {
  const GenerateFlags& flags = command->flags;
  GenerateRequest request;
  request.prompt = std::move(tokens);
  request.most_tokens = flags.most_tokens.value_or(kMostTokens);
  request.sampling.temperature = flags.temperature.value_or(0);
  request.sampling.top_k = flags.top_k.value_or(0);
  request.sampling.top_p = flags.top_p.value_or(1);
  request.sampling.seed = static_cast<uint64_t>(flags.seed.value_or(1)) + command->requests.size();
  command->prompts.push_back(prompt);
  command->requests.push_back(std::move(request));
}

absl::Status ReadPrompts(Command* command) {
  const GenerateFlags& flags = command->flags;
  std::vector<std::string> texts = flags.prompts;
  for (const std::string& file : flags.prompt_files) {
    MGC_ASSIGN_OR_RETURN(std::string text, ReadInput(file));
    texts.push_back(std::move(text));
  }
  for (const std::string& text : texts) {
    std::vector<TokenId> tokens;
    MGC_RETURN_IF_ERROR(command->tokenizer->NewEncoder()->AppendTokens(text, &tokens));
    AddRequest(text, {tokens.begin(), tokens.end()}, command);
  }
  for (const std::string& ids : flags.prompt_ids) {
    MGC_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, TokensOf(ids));
    AddRequest("", std::move(tokens), command);
  }
  return absl::OkStatus();
}

absl::Status FindEndToken(Command* command) {
  if (command->tokenizer == nullptr) return absl::OkStatus();
  command->options.vocabulary = command->tokenizer->vocabulary_size();
  const absl::optional<std::string>& given = command->flags.end_token;
  const absl::optional<TokenId> end =
      given ? command->tokenizer->Find(*given) : command->tokenizer->end_of_document();
  if (given && !end) {
    return absl::InvalidArgumentError(
        absl::StrCat("--end-token ", EscapeBytes(*given), " is no token of the tokenizer"));
  }
  if (end) command->options.end_tokens = {static_cast<int32_t>(*end)};
  return absl::OkStatus();
}

// Reads all that the command stands on but the weights.
absl::Status ReadFiles(Command* command) {
  MGC_ASSIGN_OR_RETURN(command->plan, ReadPlan(command->flags.plans[0]));
  if (command->flags.plans.size() > 1) {
    MGC_ASSIGN_OR_RETURN(command->token_plan, ReadPlan(command->flags.plans[1]));
  }
  if (const absl::optional<std::string>& name = command->flags.tokenizer; name == kBytes) {
    command->tokenizer = std::make_unique<Tokenizer>(ByteTokenizer());
  } else if (name) {
    MGC_ASSIGN_OR_RETURN(Tokenizer tokenizer, ReadTokenizer(*name));
    command->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  }
  MGC_RETURN_IF_ERROR(FindEndToken(command));
  MGC_RETURN_IF_ERROR(ReadPrompts(command));
  if (command->flags.init) {
    MGC_ASSIGN_OR_RETURN(command->init, OpenModelFor(*command->plan, *command->flags.init,
                                                     command->flags.init_adapter));
    return absl::OkStatus();
  }
  MGC_ASSIGN_OR_RETURN(command->folder, FolderToLoad(*command->flags.load));
  return absl::OkStatus();
}

std::string WordOf(GenerateEnd end) {
  return end == GenerateEnd::kEndToken ? "end_token"
         : end == GenerateEnd::kFull   ? "full"
                                       : "max_new_tokens";
}

// One text for people, or for programs.
std::string TextOf(const std::string& prompt, const std::string& text,
                   const GeneratedText& generated, const GenerateFlags& flags) {
  const std::vector<int64_t> tokens(generated.tokens.begin(), generated.tokens.end());
  if (flags.json) {
    JsonWriter json;
    json.BeginObject().String("prompt", prompt).String("text", text);
    json.Key("tokens").Integers(tokens).String("end", WordOf(generated.end)).EndObject();
    return std::move(json).Finish();
  }
  return flags.tokenizer ? absl::StrCat(prompt, text, "\n")
                         : absl::StrCat(absl::StrJoin(tokens, ","), "\n");
}

absl::Status Print(const Command& command, const std::vector<GeneratedText>& texts) {
  std::string out;
  for (size_t r = 0; r < texts.size(); ++r) {
    std::string text;
    if (command.tokenizer != nullptr) {
      const std::vector<TokenId> tokens(texts[r].tokens.begin(), texts[r].tokens.end());
      MGC_RETURN_IF_ERROR(command.tokenizer->Decode(tokens, &text));
    }
    out += TextOf(command.prompts[r], text, texts[r], command.flags);
  }
  return WriteStdout(out);
}

// Of prompts, which come at once, and of tokens, which come one by one.
void NoteSpeed(const Command& command, const std::vector<GeneratedText>& texts,
               const GenerateTimes& times) {
  size_t prompts = 0;
  size_t tokens = 0;
  for (const GenerateRequest& request : command.requests) prompts += request.prompt.size();
  for (const GeneratedText& text : texts)
    tokens += text.tokens.empty() ? 0 : text.tokens.size() - 1;
  const double prompt_seconds = static_cast<double>(times.prompt_ns) * 1e-9;
  const double seconds = static_cast<double>(times.tokens_ns) * 1e-9;
  std::string note = absl::StrFormat("%d tokens of prompts in %.3f s", prompts, prompt_seconds);
  if (tokens > 0) {
    absl::StrAppendFormat(&note, "; %d more in %.3f s, %.1f a second", tokens, seconds,
                          static_cast<double>(tokens) / seconds);
  }
  PrintNotes({note});
}

const Plan* NextPlan(const Command& command) {
  return command.token_plan.has_value() ? &*command.token_plan : nullptr;
}

absl::Status TakeWeights(const Command& command, Executor& executor) {
  if (command.init.has_value()) return ImportWeights(command.init->files, executor).status();
  return LoadCheckpoint(command.folder, executor).status();
}

absl::Status GenerateIn(World& world, const Command& command) {
  GenerateOptions options = command.options;
  options.executor.process = world.place();
  options.executor.progress = world.progress();
  if (options.executor.workers == 0) options.executor.workers = world.workers;
  options.executor.simd_level = world.simd_level.value_or(options.executor.simd_level);
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                       Generator::Create(*command.plan, NextPlan(command), options));
  MGC_RETURN_IF_ERROR(TakeWeights(command, generator->executor()));
  MGC_ASSIGN_OR_RETURN(const std::vector<GeneratedText> texts, generator->Run(command.requests));
  absl::Status printed;
  if (world.is_lead()) {
    NoteSpeed(command, texts, generator->times());
    // Where texts cannot go is no fault of what they are made from.
    printed = Print(command, texts);
    if (!printed.ok()) printed = absl::UnavailableError(printed.message());
  }
  // Nobody leaves before all have what they need of each other.
  return generator->executor().team().Agree(printed);
}

int RunIn(World& world, const Command& command) {
  const absl::Status status = GenerateIn(world, command);
  if (status.ok()) return kExitOk;
  const bool wrong =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsDataLoss(status);
  return EndRun(world, status, wrong ? kExitBadModel : kExitFailed);
}

int Launch(const Command& command) {
  const auto body = [&command](World& world) { return RunIn(world, command); };
  LaunchOptions options;
  options.command = kCommand;
  if (const Plan* const next = NextPlan(command)) options.others = {next};
  const int64_t processes = command.flags.nproc.value_or(1);
  if (processes == 1) return RunHere(*command.plan, options, body);
  const absl::StatusOr<ProcessMap> map =
      ProcessMap::Create(command.plan->mesh.world_size(), processes, 0);
  if (!map.ok()) return Fail(map.status(), kExitInfeasible);
  return RunForked(*command.plan, *map, options, body);
}

int Generate(const Words& arguments) {
  Command command;
  Flags parser(About());
  GenerateFlags& flags = command.flags;
  AddFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  if (parsed.bad_flags.empty()) parsed.errors.Append(CheckFlags(flags));
  Diagnostics violations = CheckInstructionSet(flags.instruction_set, BestSimdLevel());
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCommand);
  }
  absl::StatusOr<RunDevice> device = MakeRunDevice(flags.device.value_or(kCpuDevice), {});
  if (!device.ok()) return Fail(device.status(), kExitInfeasible);
  command.device = *std::move(device);
  ExecutorOptions& executor = command.options.executor;
  executor.kernels = command.device.kernels();
  executor.device = command.device.make;
  executor.workers = static_cast<int>(flags.workers.value_or(0));
  executor.simd_level = InstructionSetOf(flags.instruction_set, BestSimdLevel());
  if (absl::Status read = ReadFiles(&command); !read.ok()) return Fail(read, kExitBadModel);
  for (absl::optional<Plan>* plan : {&command.plan, &command.token_plan}) {
    const int code = plan->has_value() ? EnsureProved(&**plan) : int{kExitOk};
    if (code != kExitOk) return code;
  }
  return Launch(command);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Generate); }
