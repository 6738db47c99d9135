// Hand-made mistakes in compiled plans: small edits by name, so that they stay what they are when
// the compiler changes. An edit that finds nothing to change fails the test.

#ifndef MGC_TESTS_VERIFY_EDIT_PLAN_H_
#define MGC_TESTS_VERIFY_EDIT_PLAN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {

// The case of that name among TinyPlanCases, compiled.
Plan CompileTiny(absl::string_view name);

// What the check of plans finds wrong, or the proof; empty: nothing.
std::string FoundIn(const Plan& plan);

// The first segment of that name.
Segment& SegmentOf(Plan* plan, absl::string_view name);
// The first slot of a segment whose name is or ends in `name`.
int SlotOf(const Segment& segment, absl::string_view name);
// The `nth` compute or start instruction of an op, from 0.
size_t InstrOf(const Segment& segment, absl::string_view op, int nth = 0);

// Takes an instruction out: a collective with its wait. What read its results reads its operands.
void Skip(Segment* segment, size_t instr);
// As Skip for one operand of a bucket: position among its operands.
void SkipPart(Segment* segment, size_t instr, size_t part);
// Takes a compute instruction out; nothing takes the place of its results.
void Remove(Segment* segment, size_t instr);

// One mistake: what makes it, and the label by which it is to be refused.
struct PlanDamage {
  const char* name;
  const char* label;
  std::function<void(Plan*)> apply;
};

// That the plan can still be read when it is damaged, and that the proof refuses it by that label.
void ExpectRefused(Plan plan, const PlanDamage& damage);

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_EDIT_PLAN_H_
