#include "tools/benchmarks/limits.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "tools/benchmarks/temporary_folder.h"

namespace mgc {
namespace {

constexpr char kCommon[] = "--tp 8 --sequence-parallel --micro-batch-size 1 --no-verify";
constexpr int kExecFailed = 127;

LimitCase Case(const std::string& name, const std::string& flags, double most_seconds) {
  LimitCase limit;
  limit.name = name;
  limit.arguments = absl::StrSplit(absl::StrCat(flags, " ", kCommon), ' ');
  limit.most_seconds = most_seconds;
  return limit;
}

// Layers of a small model, many of them.
constexpr char kDeepModel[] = R"({
  "model_type": "llama",
  "hidden_size": 1024,
  "intermediate_size": 2816,
  "num_hidden_layers": 2048,
  "num_attention_heads": 16,
  "num_key_value_heads": 4,
  "vocab_size": 32000,
  "max_position_embeddings": 2048,
  "rms_norm_eps": 1e-5,
  "hidden_act": "silu",
  "tie_word_embeddings": false
}
)";

// The search for the fastest plan that fits.
LimitCase Search(const std::string& model, const std::string& flags) {
  const std::string words = absl::StrCat(model, " ", flags, " --auto --bf16");
  LimitCase limit;
  limit.name = absl::StrCat(model, ", search");
  limit.arguments = absl::StrSplit(words, ' ');
  limit.most_seconds = 5;
  limit.search = true;
  return limit;
}

LimitCase DeepSearch() {
  LimitCase limit =
      Search("deep.json", "--world-size 1024 --global-batch-size 1024 --cluster h100x8");
  limit.name = "2,048 layers, search";
  limit.model = kDeepModel;
  return limit;
}

// What that search finds, compiled and proved. Many stages and micro-batches take turns there:
// lists are long.
LimitCase Winner(LimitCase limit) {
  limit.name = absl::StrReplaceAll(limit.name, {{", search", ", winner"}});
  limit.search = false;
  limit.winner = true;
  limit.most_plan_bytes = (limit.model.empty() ? 4 : 6) * kMostPlanBytes;
  return limit;
}

LimitCase Proof(LimitCase limit) {
  limit.proof = true;
  limit.most_memory_bytes = 1'000'000'000;
  return limit;
}

// In the child: leaves the process one of the cores it may use.
void StayOnOneCore() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int core = CPU_SETSIZE - 1;
  while (core > 0 && CPU_ISSET(core, &allowed) == 0) --core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

absl::Status Unavailable(const std::string& what) {
  return absl::UnavailableError(absl::StrCat("cannot run a command: ", what));
}

// Runs `words` (the program's path first) to its end; what it prints goes to a file.
absl::Status RunOnOneCore(const std::vector<std::string>& words, const std::string& prints,
                          LimitResult* result) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0) return Unavailable(std::strerror(errno));
  if (child == 0) {
    StayOnOneCore();
    const int file = open(prints.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) dup2(file, STDOUT_FILENO);
    execv(pointers[0], pointers.data());
    _exit(kExecFailed);
  }
  int state = 0;
  rusage usage = {};
  while (wait4(child, &state, 0, &usage) < 0) {
    if (errno != EINTR) return Unavailable(std::strerror(errno));
  }
  result->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result->cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  result->memory_bytes = int64_t{usage.ru_maxrss} * 1024;
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  if (WIFEXITED(state)) return Unavailable(absl::StrCat("it exits with ", WEXITSTATUS(state)));
  return Unavailable(absl::StrCat("signal ", WTERMSIG(state), " ended it"));
}

absl::StatusOr<JsonValue> ReadReport(const std::string& report) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(report));
  return ParseJson(text, report);
}

// Of a search's report.
absl::StatusOr<int64_t> CandidatesIn(const std::string& report) {
  MGC_ASSIGN_OR_RETURN(const JsonValue json, ReadReport(report));
  const JsonValue* candidates = json.Find("candidates");
  if (candidates == nullptr) return Unavailable("its report says nothing of candidates");
  return candidates->integer;
}

// The words of a search with what it has found in place of `--auto`.
absl::StatusOr<std::vector<std::string>> WordsOfWinner(std::vector<std::string> words,
                                                       const std::string& report) {
  MGC_ASSIGN_OR_RETURN(const JsonValue json, ReadReport(report));
  const JsonValue* ranked = json.Find("ranked");
  const bool has_plan = ranked != nullptr && !ranked->items.empty();
  const JsonValue* flags = has_plan ? ranked->items[0].Find("flags") : nullptr;
  if (flags == nullptr) return Unavailable("its report has no plan");
  words.erase(
      std::remove_if(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--auto" || word == "--bf16"; }),
      words.end());
  for (const absl::string_view word : absl::StrSplit(flags->text, ' ')) words.emplace_back(word);
  return words;
}

}  // namespace

std::vector<LimitCase> LimitCases() {
  const std::string trillion = "megatron-1t --world-size 3072 --pp 64 --global-batch-size 3072";
  const std::string llama =
      "llama3-405b --world-size 16384 --pp 16 --global-batch-size 2048 --schedule ";
  const std::string gpt = "--world-size 1024 --global-batch-size 1536 --cluster a100x8";
  const std::string llama_ranks = "--world-size 16384 --global-batch-size 2048 --cluster h100x8";
  const std::string megatron = "--world-size 3072 --global-batch-size 3072 --cluster a100x8";
  return {
      Case("gpt3-175b", "gpt3-175b --world-size 1024 --pp 8 --global-batch-size 1536", 2),
      Case("llama3-405b", absl::StrCat(llama, "1f1b"), 2),
      Case("llama3-405b, 8 chunks", absl::StrCat(llama, "interleaved --vp 8"), 2),
      Case("llama3-405b, cp 2", absl::StrCat(llama, "1f1b --cp 2"), 2),
      Case("megatron-1t", trillion, 3),
      Proof(Case("llama3-405b, proof", absl::StrCat(llama, "1f1b"), 10)),
      Proof(Case("llama3-405b, 8 chunks, proof", absl::StrCat(llama, "interleaved --vp 8"), 10)),
      Proof(Case("llama3-405b, cp 2, proof", absl::StrCat(llama, "1f1b --cp 2"), 10)),
      Proof(Case("megatron-1t, proof", trillion, 10)),
      Search("gpt3-175b", gpt),
      Search("llama3-405b", llama_ranks),
      Search("megatron-1t", megatron),
      DeepSearch(),
      Winner(Search("gpt3-175b", gpt)),
      Winner(Search("llama3-405b", llama_ranks)),
      Winner(Search("megatron-1t", megatron)),
      Winner(DeepSearch()),
  };
}

absl::StatusOr<LimitResult> MeasureLimit(const std::string& folder, const LimitCase& limit,
                                         int repetitions) {
  const TemporaryFolder folder_of_plan;
  const std::string plan = folder_of_plan.path() + "/plan";
  const std::string prints = folder_of_plan.path() + "/prints";
  std::vector<std::string> words = {folder + "/mgc-compile"};
  words.insert(words.end(), limit.arguments.begin(), limit.arguments.end());
  if (!limit.model.empty()) {
    words[1] = folder_of_plan.path() + "/deep.json";
    MGC_RETURN_IF_ERROR(WriteFileAtomically(words[1], limit.model));
  }
  LimitResult best;
  std::vector<std::string> reported = words;
  reported.insert(reported.end(), {"--report", "json"});
  if (limit.winner) {
    MGC_RETURN_IF_ERROR(RunOnOneCore(reported, prints, &best));
    MGC_ASSIGN_OR_RETURN(words, WordsOfWinner(std::move(words), prints));
  }
  if (limit.search) {
    words = std::move(reported);
  } else {
    words.insert(words.end(), {"-o", plan});
  }
  if (limit.proof) {
    MGC_RETURN_IF_ERROR(RunOnOneCore(words, prints, &best));
    words = {folder + "/mgc-verify", plan};
  }
  for (int i = 0; i < repetitions; ++i) {
    LimitResult result;
    result.limit = limit;
    MGC_RETURN_IF_ERROR(RunOnOneCore(words, prints, &result));
    struct stat file = {};
    if (!limit.search && stat(plan.c_str(), &file) != 0) {
      return Unavailable("it wrote no plan");
    }
    result.plan_bytes = file.st_size;
    if (limit.search) {
      MGC_ASSIGN_OR_RETURN(result.candidates, CandidatesIn(prints));
    }
    if (i == 0 || result.seconds < best.seconds) best = result;
  }
  return best;
}

std::string LimitsText(absl::Span<const LimitResult> results) {
  std::string text =
      absl::StrFormat("%-28s %10s %10s %10s %10s %10s %10s\n", "one core, fastest run", "seconds",
                      "at most", "CPU s", "plan kB", "memory MB", "candidates");
  for (const LimitResult& r : results) {
    absl::StrAppendFormat(&text, "%-28s %10.2f %10.0f %10.2f %10.0f %10.0f %10s%s\n", r.limit.name,
                          r.seconds, r.limit.most_seconds, r.cpu_seconds, r.plan_bytes / 1e3,
                          r.memory_bytes / 1e6, r.limit.search ? absl::StrCat(r.candidates) : "",
                          r.within() ? "" : "  missed");
  }
  absl::StrAppendFormat(&text,
                        "plans below %d kB, of winners %d kB, of many layers %d kB; memory below "
                        "500 MB, of proofs alone "
                        "1000 MB; %d candidates of a search at least\n",
                        kMostPlanBytes / 1000, 4 * kMostPlanBytes / 1000, 6 * kMostPlanBytes / 1000,
                        kLeastCandidates);
  return text;
}

std::string LimitsJson(absl::Span<const LimitResult> results) {
  JsonWriter json;
  json.BeginObject().Key("limits").BeginArray();
  for (const LimitResult& r : results) {
    json.NewLine().BeginObject().String("name", r.limit.name);
    json.Key("seconds").Number(r.seconds).Key("most_seconds").Number(r.limit.most_seconds);
    json.Key("cpu_seconds").Number(r.cpu_seconds);
    json.Integer("plan_bytes", r.plan_bytes).Integer("memory_bytes", r.memory_bytes);
    if (r.limit.search) json.Integer("candidates", r.candidates);
    json.Key("within").Bool(r.within()).EndObject();
  }
  json.EndArray().Key("within").Bool(
      std::all_of(results.begin(), results.end(), [](const LimitResult& r) { return r.within(); }));
  return std::move(json.EndObject()).Finish();
}

}  // namespace mgc
