#include "graph/verify/meaning/gradient_sums.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/eval/eval.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

// The parameter whose gradient `sum` collects, by its name; empty for anything else.
std::string ParamOf(const Plan& plan, const Slot& sum, int layer) {
  const std::string name = NameForLayer(sum.name, layer);
  absl::string_view param = name;
  if (!absl::ConsumeSuffix(&param, kGradSuffix)) return "";
  const ValueId value = plan.model.FindValue(param);
  const GraphInput* input = value == kNone ? nullptr : plan.model.FindInput(value);
  const bool is_param = input != nullptr && input->kind == InputKind::kParam &&
                        SizesOf(plan.model.type(value)) == SizesOf(sum.type);
  return is_param ? std::string(param) : "";
}

// The place of a rank among those that owe to each other.
int64_t ShareIndex(const AxisSet& owed, const Mesh& mesh, int64_t rank) {
  int64_t index = 0;
  for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
    if (owed.Contains(axis)) index = index * mesh.size(axis) + mesh.Coordinate(rank, axis);
  }
  return index;
}

ResidueTensor RandomShare(const StepInputs& inputs, const GradientSum& sum, int64_t index) {
  return inputs.Real(absl::StrCat(sum.param, "/share ", index), sum.slot->type);
}

}  // namespace

std::vector<GradientSum> GradientSums(const Plan& plan) {
  std::vector<GradientSum> sums;
  std::set<std::string> seen;
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    for (const Chunk& chunk : plan.classes[c].chunks) {
      for (const Call& call : chunk.backward) {
        for (const Slot& slot : plan.segments[static_cast<size_t>(call.segment)].slots) {
          const Binding& binding = call.bindings[static_cast<size_t>(slot.formal)];
          std::string param = ParamOf(plan, slot, call.layer);
          if (param.empty() || binding.base != BaseKind::kAbsolute) continue;
          if (!seen.insert(param).second) continue;
          const int64_t begin = binding.offset + slot.offset;
          sums.push_back({static_cast<int>(c),
                          &slot,
                          {begin, begin + slot.bytes},
                          call.layer,
                          std::move(param)});
        }
      }
    }
  }
  return sums;
}

std::set<std::string> ParamsOf(const std::vector<GradientSum>& sums) {
  std::set<std::string> params;
  for (const GradientSum& sum : sums) params.insert(sum.param);
  return params;
}

ResidueTensor ShareOfSum(const StepInputs& inputs, const GradientSum& sum, const Mesh& mesh,
                         int64_t rank) {
  const Slot& slot = *sum.slot;
  const int64_t index = ShareIndex(slot.sharding.sum, mesh, rank);
  if (index > 0)
    return CutTile(RandomShare(inputs, sum, index), slot.type, slot.sharding, mesh, rank);
  int64_t shares = 1;
  for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
    if (slot.sharding.sum.Contains(axis)) shares *= mesh.size(axis);
  }
  ResidueTensor rest = inputs.Real(StartName(sum.param), slot.type);
  for (int64_t other = 1; other < shares; ++other) {
    const ResidueTensor share = RandomShare(inputs, sum, other);
    for (size_t i = 0; i < rest.real.size(); ++i) rest.real[i] = rest.real[i] - share.real[i];
  }
  return CutTile(rest, slot.type, slot.sharding, mesh, rank);
}

}  // namespace mgc
