#include "tests/verify/edit_plan.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

void Rename(Segment* segment, size_t from, int old_slot, int new_slot) {
  for (size_t i = from; i < segment->instrs.size(); ++i) {
    std::vector<int>& inputs = segment->instrs[i].inputs;
    std::replace(inputs.begin(), inputs.end(), old_slot, new_slot);
  }
}

// Collectives are numbered without gaps.
void DropCollective(Segment* segment, int number) {
  std::vector<Instr>& instrs = segment->instrs;
  instrs.erase(std::remove_if(instrs.begin(), instrs.end(),
                              [&](const Instr& instr) { return instr.collective == number; }),
               instrs.end());
  for (Instr& instr : instrs) instr.collective -= instr.collective > number ? 1 : 0;
  --segment->num_collectives;
}

}  // namespace

std::string FoundIn(const Plan& plan) {
  const absl::Status readable = CheckPlan(plan);
  return readable.ok() ? VerifyPlan(plan).findings.ToString() : std::string(readable.message());
}

Plan CompileTiny(absl::string_view name) {
  for (const PlanCase& plan_case : TinyPlanCases()) {
    if (plan_case.name == name) return CompilePlanCase(plan_case);
  }
  MGC_CHECK(false) << "no case " << std::string(name);
  return Plan();
}

Segment& SegmentOf(Plan* plan, absl::string_view name) {
  for (Segment& segment : plan->segments) {
    if (segment.name == name) return segment;
  }
  MGC_CHECK(false) << "no segment " << std::string(name);
  return plan->segments[0];
}

int SlotOf(const Segment& segment, absl::string_view name) {
  for (size_t s = 0; s < segment.slots.size(); ++s) {
    if (absl::EndsWith(segment.slots[s].name, name)) return static_cast<int>(s);
  }
  MGC_CHECK(false) << segment.name << " has no slot " << std::string(name);
  return 0;
}

size_t InstrOf(const Segment& segment, absl::string_view op, int nth) {
  for (size_t i = 0; i < segment.instrs.size(); ++i) {
    if (segment.instrs[i].op != nullptr && segment.instrs[i].op->name == op && nth-- == 0) return i;
  }
  MGC_CHECK(false) << segment.name << " has no " << std::string(op);
  return 0;
}

void Skip(Segment* segment, size_t instr) {
  const Instr gone = segment->instrs[instr];
  for (size_t k = 0; k < gone.outputs.size(); ++k) {
    Rename(segment, instr, gone.outputs[k], gone.inputs[k]);
  }
  if (gone.kind == InstrKind::kStart) {
    DropCollective(segment, gone.collective);
  } else {
    Remove(segment, instr);
  }
}

void SkipPart(Segment* segment, size_t instr, size_t part) {
  Instr& bucket = segment->instrs[instr];
  const int from = bucket.inputs[part];
  const int to = bucket.outputs[part];
  bucket.inputs.erase(bucket.inputs.begin() + static_cast<int64_t>(part));
  bucket.outputs.erase(bucket.outputs.begin() + static_cast<int64_t>(part));
  MGC_CHECK(!bucket.inputs.empty()) << "a bucket of one";
  Rename(segment, instr, to, from);
}

void Remove(Segment* segment, size_t instr) {
  segment->instrs.erase(segment->instrs.begin() + static_cast<int64_t>(instr));
}

void ExpectRefused(Plan plan, const PlanDamage& damage) {
  damage.apply(&plan);
  const absl::Status readable = CheckPlan(plan);
  ASSERT_TRUE(readable.ok()) << readable;
  const VerifyReport report = VerifyPlan(plan);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.findings.ToString(), ::testing::HasSubstr(damage.label));
}

}  // namespace mgc
