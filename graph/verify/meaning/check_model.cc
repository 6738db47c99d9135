#include "graph/verify/meaning/check_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "graph/ir/step_names.h"
#include "graph/types/sharding.h"
#include "graph/verify/common/slot_lists.h"

namespace mgc {
namespace {

constexpr size_t kMostNodes = size_t{1} << 16;
constexpr double kWorkOfInstr = 256;  // beside what it does to numbers

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

bool IsReal(const Graph& model, ValueId value) { return model.type(value).dtype != DType::kI64; }

absl::Status CheckInputs(const Graph& model) {
  absl::flat_hash_set<std::string> names;
  for (const GraphInput& input : model.inputs()) {
    const std::string& name = model.value(input.value).name;
    if (!names.insert(name).second) {
      return Refuse(absl::StrCat("two inputs of the model are called `", name, "`"));
    }
    if (input.kind == InputKind::kData) continue;
    if (IsKeptState(model, input) && IsAsked(model)) continue;
    if (input.kind != InputKind::kParam) {
      return Refuse(absl::StrCat("input `", name, "` is neither data nor a parameter"));
    }
    if (!IsReal(model, input.value)) {
      return Refuse(absl::StrCat("parameter `", name, "` has no real numbers"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const Graph& model) {
  int losses = 0;
  int counts = 0;
  for (const GraphOutput& output : model.outputs()) {
    losses += output.kind == OutputKind::kLoss ? 1 : 0;
    if (output.kind != OutputKind::kReport || output.name != kCountReport) continue;
    ++counts;
    const Value& value = model.value(output.value);
    if (!value.type.dims.empty() || !IsReal(model, output.value) || value.producer == kNone) {
      return Refuse("the count of tokens is no scalar that a node computes");
    }
  }
  if (losses > 0 && counts == 1) return absl::OkStatus();
  return Refuse("the model has no loss or no report `count` of the tokens it sums over");
}

double Product(const FactorRule& rule) {
  double points = 1;
  for (const Factor& factor : rule.factors) points *= static_cast<double>(factor.size);
  return points;
}

double WorkOf(const Graph& model) {
  double work = 0;
  for (const Node& node : model.nodes()) work += kWorkOfInstr + Product(RuleOf(model, node));
  return work;
}

// By all ranks together, pieces of uneven dims counted as whole.
double WorkOf(const Segment& segment, const Mesh& mesh) {
  double work = 0;
  for (const Instr& instr : segment.instrs) {
    double points = 0;
    for (const std::vector<int>* list : {&instr.inputs, &instr.outputs}) {
      for (int index : *list) {
        const Slot& slot = segment.slots[static_cast<size_t>(index)];
        points += static_cast<double>(LocalElements(slot.type, slot.sharding, mesh)) *
                  static_cast<double>(mesh.world_size());
      }
    }
    if (instr.kind == InstrKind::kCompute && !instr.op->collective) {
      const auto operands = TypesOf(segment, instr.inputs);
      const auto results = TypesOf(segment, instr.outputs);
      const absl::StatusOr<FactorRule> rule =
          RuleOf(*instr.op, OpUse{instr.attrs, operands, results});
      if (rule.ok()) points += Product(*rule);
    } else if (instr.kind == InstrKind::kStart) {
      points *= 4;  // members of a group
    }
    work += static_cast<double>(mesh.world_size()) * kWorkOfInstr + points;
  }
  return work;
}

}  // namespace

absl::Status CheckModel(const Graph& model) {
  if (model.nodes().size() > kMostNodes) {
    return Refuse(absl::StrCat("a model of ", model.nodes().size(), " nodes is too large"));
  }
  if (model.level() != Level::kLogical) {
    return Refuse(absl::StrCat("the model is a ", NameOf(model.level()), " graph"));
  }
  const absl::Status sound = CheckGraph(model);
  if (!sound.ok()) return Refuse(std::string(sound.message()));
  MGC_RETURN_IF_ERROR(CheckInputs(model));
  return CheckOutputs(model);
}

double WorkOfStep(const Plan& small) {
  std::vector<double> by_segment;
  for (const Segment& segment : small.segments) {
    by_segment.push_back(WorkOf(segment, small.mesh) /
                         static_cast<double>(std::max<size_t>(small.classes.size(), 1)));
  }
  // Forward and backward, twice with tangents.
  double work = WorkOf(small.model) * 8 * static_cast<double>(small.num_micro_batches);
  for (const PlanClass& c : small.classes) {
    const auto add = [&](const std::vector<Call>& calls) {
      for (const Call& call : calls) work += by_segment[static_cast<size_t>(call.segment)];
    };
    for (const Action& action : c.train.compute) {
      add(CallsOf(small, c, /*eval=*/false, action.ref));
    }
  }
  return work;
}

}  // namespace mgc
