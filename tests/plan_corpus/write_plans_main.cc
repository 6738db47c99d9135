// write_plans FOLDER: writes the pinned plans of small models, those of context parallelism and the
// tiny ones of tests/plan_forms, proved, as NAME.plan into a folder that is there; prints a line
// for each: name, number of ranks, and the flags of mgc-run that it needs.

#include <cstdio>
#include <string>

#include "graph/base/file.h"
#include "graph/base/status.h"
#include "tests/plan_corpus/pinned_plans.h"
#include "tests/plan_forms/corpus.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/proof.h"

namespace mgc {
namespace {

void Write(const std::string& folder, const std::string& name, Plan plan) {
  MGC_CHECK(ProveOrExplain(&plan) == 0) << name;
  const std::string path = folder + "/" + name + ".plan";
  const absl::Status status = WriteFileAtomically(path, PlanContent(plan, path));
  MGC_CHECK(status.ok()) << status.ToString();
  // A scale at which nothing overflows.
  const char* const flags = ScalesLoss(plan) ? " --initial-loss-scale 1024" : "";
  std::printf("%s %lld%s\n", name.c_str(), static_cast<long long>(plan.mesh.world_size()), flags);
}

void WriteTrained(const std::string& folder, const TrainCase& c) {
  const absl::StatusOr<Plan> plan = CompileCase(c);
  MGC_CHECK(plan.ok()) << NameOf(c) << ": " << plan.status().ToString();
  Write(folder, NameOf(c), *plan);
}

void WritePlans(const std::string& folder) {
  for (const PinnedCase& pinned : PinnedCases()) {
    if (pinned.trained) WriteTrained(folder, pinned.train);
  }
  for (const TrainCase& c : ContextParallelCases()) WriteTrained(folder, c);
  for (const PlanCase& c : TinyPlanCases()) Write(folder, c.name, CompilePlanCase(c));
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_plans FOLDER\n");
    return 2;
  }
  mgc::WritePlans(argv[1]);
  return 0;
}
