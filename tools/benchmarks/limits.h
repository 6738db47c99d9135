// What compiling the largest models may cost: time on one core, memory, size of the plan.
//
// The real command runs as a child process, so that its whole life counts: reading the model,
// compiling, writing the plan.

#ifndef MGC_TOOLS_BENCHMARKS_LIMITS_H_
#define MGC_TOOLS_BENCHMARKS_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mgc {

inline constexpr int64_t kMostPlanBytes = 2'000'000;

struct LimitCase {
  std::string name;
  std::vector<std::string> arguments;  // of mgc-compile, without -o
  double most_seconds = 0;
  int64_t most_memory_bytes = 500'000'000;
  int64_t most_plan_bytes = kMostPlanBytes;
  bool proof = false;   // what is measured is mgc-verify on the plan
  bool search = false;  // what is measured makes no plan
  bool winner = false;  // what is measured is the plan that a search with the arguments finds
  std::string model;    // the file `deep.json` of the arguments; empty: they name none
};

inline constexpr int64_t kLeastCandidates = 10'000;  // of a search

// gpt3-175b for 1,024 ranks, llama3-405b for 16,384 (one and eight chunks a rank), megatron-1t for
// 3,072; with sequence parallelism and micro-batch 1, without the proof; the proofs of the last two
// models by themselves; for each model, and for one of 2,048 layers, the search for its fastest
// plan; and the plans that are found, compiled and proved.
std::vector<LimitCase> LimitCases();

struct LimitResult {
  LimitCase limit;
  double seconds = 0;        // wall clock, from start to end of the process
  double cpu_seconds = 0;    // user and system
  int64_t plan_bytes = 0;    // of the file, 0: none is made
  int64_t memory_bytes = 0;  // largest resident set
  int64_t candidates = 0;    // of a search

  bool within() const {
    return seconds < limit.most_seconds && plan_bytes < limit.most_plan_bytes &&
           memory_bytes < limit.most_memory_bytes &&
           (!limit.search || candidates >= kLeastCandidates);
  }
};

// Runs mgc-compile, or mgc-verify on what it made, `repetitions` >= 1 times on one core and keeps
// the fastest run; both programs lie in `folder`. Errors: Unavailable when one cannot be started or
// ended with an error.
absl::StatusOr<LimitResult> MeasureLimit(const std::string& folder, const LimitCase& limit,
                                         int repetitions);

// A table for people; a JSON object {"limits": [...], "within": bool}.
std::string LimitsText(absl::Span<const LimitResult> results);
std::string LimitsJson(absl::Span<const LimitResult> results);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_LIMITS_H_
