// Compiled plans on which the file forms are tried: small ones that use every feature of plans, and
// the three large models.

#ifndef MGC_TESTS_PLAN_FORMS_CORPUS_H_
#define MGC_TESTS_PLAN_FORMS_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "passes/config/parallel_config.h"
#include "passes/pass.h"

namespace mgc {

struct PlanCase {
  std::string name;   // fit for a test's name
  std::string model;  // a preset
  int64_t tp = 1;
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t dp = 1;
  int64_t micro_batches = 1;
  int64_t seq_length = 0;  // 0: the preset's
  bool sequence_parallel = false;
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  RecomputeKind recompute = RecomputeKind::kNone;
  int64_t zero = 0;
  bool bf16 = false;
  std::string machine = "a100x8";  // a preset
  bool bf16_sums = false;          // of gradients over dp
  bool fp16 = false;
  int64_t zero_group = 0;
  int64_t split_products = 1;
  int64_t micro_batch_size = 1;
  std::string optimizer = "";  // empty: the first
};

// Some plans of the tiny presets.
std::vector<PlanCase> TinyPlanCases();
// `gpt3-175b`, `llama3-405b` and `megatron-1t` on thousands of ranks.
std::vector<PlanCase> LargePlanCases();

// The plan of a case; aborts when it does not compile. `run` as in CompileOptions.
Plan CompilePlanCase(const PlanCase& plan_case, RunOptions run = {});

}  // namespace mgc

#endif  // MGC_TESTS_PLAN_FORMS_CORPUS_H_
