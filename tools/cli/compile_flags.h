// The flags of mgc-compile, and what of them cannot go together.

#ifndef MGC_TOOLS_CLI_COMPILE_FLAGS_H_
#define MGC_TOOLS_CLI_COMPILE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {

inline constexpr char kCompileCommand[] = "mgc-compile";

struct CompileFlags {
  Words models;
  ParallelFlags parallel;
  absl::optional<std::string> cluster, output, dot, svg, html, plot, report, dump_dir, stop_after;
  bool reset_attention_mask = false;
  bool reset_position_ids = false;
  absl::optional<std::string> next_token;
  absl::optional<int64_t> cache_length;
  bool eval_only = false;
  bool int8 = false;
  absl::optional<int64_t> lora_rank;
  absl::optional<double> lora_alpha;
  absl::optional<std::string> lora_targets;
  bool no_verify = false;
  bool timing = false;
  bool search = false;
  bool estimate = false;
  absl::optional<int64_t> budget;
  bool search_precision = false;
  bool json_is_out = false;  // on stdout, which then holds nothing else

  // Whether a report is to be JSON.
  bool ReportsJson() const { return report.value_or("text") == "json"; }
};

CommandText AboutCompile();

// What the flags ask of the model, put into `source`. F7, by what asks for it, where the model
// cannot follow: of another family, or in text.
Diagnostics AskOfModel(const CompileFlags& flags, ModelSource* source);

// `out` outlives `flags`.
void AddCompileFlags(Flags* flags, CompileFlags* out);

// Those of them that say what the model is, which a plan holds itself.
void AddModelFlags(Flags* flags, CompileFlags* out);

// The files that a compilation reads.
std::vector<NamedPath> InputsOf(const CompileFlags& flags);

// F6: nothing to write, views of a plan that is not made, paths in each other's way. F7: a search
// that is not asked for, and what it cannot look for; results of a plan that is only estimated;
// what an adapter is like without one.
void CheckCompileFlags(const CompileFlags& flags, ParsedFlags* parsed);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_COMPILE_FLAGS_H_
