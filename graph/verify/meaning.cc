#include "graph/verify/meaning.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/verify/check_model.h"
#include "graph/verify/gradient_sums.h"
#include "graph/verify/reference.h"
#include "graph/verify/run_plan.h"
#include "graph/verify/shrink.h"
#include "graph/verify/step_inputs.h"

namespace mgc {
namespace {

constexpr uint64_t kFirstKey = 0x6d67632d70726f6f;
constexpr int kMostKeys = 4;

// A bound of the degree, as a quotient of polynomials, of any argument of a keyed function in the
// results of others. A denominator is the result of a call (a softmax' sum, a norm) or the token
// count: common denominators have no more factors than there are calls on a single device. An op
// multiplies what it is given, its own gradient included, at most kFactors times, so numerators
// grow by that much a node on the longest path.
int64_t DegreeBound(const Graph& model, const StepReference& reference) {
  constexpr int64_t kFactors = 16;
  return reference.calls + kFactors * 2 * static_cast<int64_t>(model.nodes().size());
}

// Puts the first value of the forward pass that differs, if there is one, in front.
void Localize(PlanRun run, Findings* found) {
  run.localize = true;
  Findings located;
  RunPlan(run, &located);
  if (!located.Has("meaning_v6")) return;
  if (!found->Has("meaning_v6")) located.Append(*found);
  *found = located;
}

// One set of sizes under one key. False when a denominator was zero by chance: then nothing has
// been added, and another key has to be tried.
bool CheckOnce(const Plan& real, const Plan& small, uint64_t key, MeaningReport* report,
               Findings* findings) {
  const StepInputs inputs(small.model, key);
  absl::StatusOr<StepReference> expected = EvaluateStep(
      small.model, inputs, key, small.num_micro_batches, ParamsOf(GradientSums(small)));
  if (!expected.ok()) {
    findings->Add(FindingOf(expected.status(), "model", "meaning_v1"));
    return true;
  }
  if (expected->zero_denominators > 0) return false;
  report->calls += expected->calls;
  report->degree = std::max(report->degree, DegreeBound(small.model, *expected));
  if (!expected->gradients_hold) {
    findings->Add("meaning_v8", "model",
                  "the ops' gradient rules do not give the derivative of the loss");
  }
  for (const bool eval : {false, true}) {
    const PlanRun run{real, small, inputs, *expected, key, eval, /*localize=*/false};
    Findings found;
    const RunCounts counts = RunPlan(run, &found);
    if (counts.zero_denominators > 0 && findings->empty()) return false;
    report->calls += counts.calls;
    ++report->runs;
    if (found.empty()) continue;
    if (found.Has("meaning_v4") || found.Has("meaning_v6")) Localize(run, &found);
    findings->Append(found);
  }
  return true;
}

void Require(bool holds, absl::string_view place, absl::string_view text, Findings* findings) {
  if (!holds) findings->Add("meaning_v9", place, text);
}

// Parameters start as the model says.
void CheckStarts(const Plan& plan, Findings* findings) {
  for (const PlanClass& c : plan.classes) {
    for (const HeldBlock& held : c.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        const std::string name = NameForLayer(entry.name, held.layer);
        const ValueId value = plan.model.FindValue(name);
        const GraphInput* input = value == kNone ? nullptr : plan.model.FindInput(value);
        if (input == nullptr) continue;  // reported by who owns what
        Require(input->attrs == entry.init, absl::StrCat("parameter `", name, "`"),
                "its attributes, among them how it starts, are not those of the model", findings);
      }
    }
  }
}

// Every mean gradient has a sum that a run can start at random.
void CheckSums(const Plan& plan, Findings* findings) {
  const std::set<std::string> summed = ParamsOf(GradientSums(plan));
  for (const PlanClass& c : plan.classes) {
    for (const HeldBlock& held : c.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        const std::string name = NameForLayer(entry.name, held.layer);
        Require(entry.mean_base.empty() || summed.count(name) > 0,
                absl::StrCat("parameter `", name, "`"),
                absl::StrCat("no backward adds to a sum of gradients named `", name, "/grad`"),
                findings);
      }
    }
  }
}

bool HasDim(const TensorType& type, absl::string_view name) {
  return std::any_of(type.dims.begin(), type.dims.end(),
                     [name](const Dim& dim) { return dim.name == name; });
}

// The numbers of samples and tokens that decide which data a step takes.
void CheckBatch(const Plan& plan, Findings* findings) {
  const std::string place = "plan";
  const Graph& model = plan.model;
  for (const GraphInput& input : model.inputs()) {
    const Value& value = model.value(input.value);
    Require(input.kind != InputKind::kData || HasDim(value.type, "batch"),
            absl::StrCat("data `", value.name, "`"),
            absl::StrCat("is ", value.type.ToString(), "; samples are counted along `batch`"),
            findings);
    for (const Dim& dim : value.type.dims) {
      if (input.kind == InputKind::kData && dim.name == "batch") {
        Require(plan.global_batch_size % plan.num_micro_batches == 0 &&
                    dim.size == plan.global_batch_size / plan.num_micro_batches,
                place,
                absl::StrCat("states ", plan.global_batch_size, " samples a step; ",
                             plan.num_micro_batches, " micro-batches of ", dim.size, " are run"),
                findings);
      } else if (input.kind == InputKind::kData && dim.name == "seq") {
        Require(
            dim.size == plan.seq_length, place,
            absl::StrCat("states ", plan.seq_length, " tokens a sample; the model has ", dim.size),
            findings);
      } else if (input.kind == InputKind::kParam && dim.name == "vocab") {
        Require(dim.size == plan.vocab, place,
                absl::StrCat("states a vocabulary of ", plan.vocab, "; the model has ", dim.size),
                findings);
      }
    }
  }
}

// Every rank loads as many samples of a micro-batch as the plan states.
void CheckRows(const Plan& plan, Findings* findings) {
  for (const Segment& segment : plan.segments) {
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kLoad) continue;
      const Slot& slot = segment.slots[static_cast<size_t>(instr.outputs[0])];
      for (size_t d = 0; d < slot.type.dims.size(); ++d) {
        if (slot.type.dims[d].name != "batch") continue;
        const int64_t rows = LocalSize(slot.type.dims[d], slot.sharding.dims[d], plan.mesh);
        Require(rows == plan.micro_batch_size, absl::StrCat("segment ", segment.name),
                absl::StrCat("loads ", rows, " samples of `", slot.name, "`; the plan states ",
                             plan.micro_batch_size),
                findings);
      }
    }
  }
}

}  // namespace

MeaningReport CheckMeaning(const Plan& plan, Findings* findings) {
  MeaningReport report;
  CheckStarts(plan, findings);
  CheckBatch(plan, findings);
  CheckRows(plan, findings);
  CheckSums(plan, findings);
  const absl::Status sound = CheckModel(plan.model);
  if (!sound.ok()) findings->Add(FindingOf(sound, "model", "meaning_v1"));
  if (!findings->empty()) return report;
  uint64_t key = kFirstKey;
  const absl::StatusOr<std::vector<Mesh>> meshes = SmallMeshes(plan);
  if (!meshes.ok()) {
    findings->Add(FindingOf(meshes.status(), "plan", "meaning_v1"));
    return report;
  }
  for (const Mesh& mesh : *meshes) {
    const absl::StatusOr<Plan> small = ShrinkPlan(plan, mesh);
    const absl::Status fits = small.ok() ? CheckWork(*small) : small.status();
    if (!fits.ok()) {
      findings->Add(FindingOf(fits, "plan", "meaning_v1"));
      return report;
    }
    bool done = false;
    for (int tries = 0; tries < kMostKeys && !done; ++tries) {
      done = CheckOnce(plan, *small, ++key, &report, findings);
    }
    if (!done) {
      findings->Add("meaning_v1", "plan", "something is divided by zero under every key");
    }
    if (!findings->empty()) return report;
  }
  return report;
}

}  // namespace mgc
