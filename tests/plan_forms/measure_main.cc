// Prints the size of the large plans as files, and how long writing and reading them takes.

#include <chrono>
#include <cstdio>

#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Measure(const PlanCase& plan_case) {
  const double begin = Now();
  const Plan plan = CompilePlanCase(plan_case);
  const double compiled = Now();
  const std::string bytes = SerializePlan(plan);
  const double written = Now();
  const absl::StatusOr<Plan> read = DeserializePlan(bytes, plan_case.name);
  const double end = Now();
  std::printf("%-16s %8zu bytes  compiled %.2f s  written %.3f s  read %.3f s%s\n",
              plan_case.name.c_str(), bytes.size(), compiled - begin, written - compiled,
              end - written, read.ok() ? "" : " and refused");
  const std::string text = PrintPlan(plan);
  const double printed = Now();
  const absl::StatusOr<Plan> parsed = ParsePlan(text, plan_case.name);
  std::printf("%-16s %8zu bytes of text, printed %.3f s  parsed %.3f s%s\n", "", text.size(),
              printed - end, Now() - printed, parsed.ok() ? "" : " and refused");
}

}  // namespace
}  // namespace mgc

int main() {
  for (const mgc::PlanCase& plan_case : mgc::LargePlanCases()) mgc::Measure(plan_case);
  return 0;
}
