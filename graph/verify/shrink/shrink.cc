#include "graph/verify/shrink/shrink.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/retype.h"
#include "graph/plan/fewer_micro_batches.h"
#include "graph/verify/common/slot_lists.h"
#include "graph/verify/shrink/covering_meshes.h"
#include "graph/verify/shrink/dim_sizes.h"
#include "graph/verify/shrink/drop_axes.h"
#include "graph/verify/shrink/kept_micro_batches.h"

namespace mgc {
namespace {

std::vector<const TensorType*> TypesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<const TensorType*> types;
  types.reserve(ids.size());
  for (ValueId id : ids) types.push_back(&graph.type(id));
  return types;
}

// The numbers of a node that stay what they are whatever the sizes.
std::vector<int64_t> FixedNumbers(const Node& node) {
  std::vector<int64_t> numbers;
  if (node.op->resized) return numbers;
  for (const AttrSpec& spec : node.op->attrs) {
    const bool given = spec.kind == AttrKind::kInt && node.attrs.Find(spec.name) != nullptr;
    if (given) numbers.push_back(node.attrs.Int(spec.name));
  }
  return numbers;
}

// What the makers of a node's indices state.
std::vector<int64_t> StatedByMakers(const Graph& model, const Node& node) {
  std::vector<int64_t> stated;
  for (int operand : node.op->index_operands) {
    const int maker = model.value(node.inputs[static_cast<size_t>(operand)]).producer;
    if (maker == kNone) continue;
    for (int64_t number : FixedNumbers(model.nodes()[static_cast<size_t>(maker)])) {
      stated.push_back(number);
    }
  }
  return stated;
}

// The size of a dim that has been added is stated by an attribute, as that of what a slice takes
// from.
void StateSize(const TensorType& type, size_t d, DimSizes* sizes) {
  FactorRule rule;
  rule.factors.emplace_back();
  rule.factors[0].size = type.dims[d].size;
  rule.factors[0].whole = true;
  rule.operands = {{{0}}};
  const TensorType dim = {type.dtype, {type.dims[d]}};
  const std::vector<const TensorType*> operands = {&dim};
  sizes->AddUse(rule, operands, std::vector<const Sharding*>(1, nullptr), {}, {});
}

// A dim that is looked up by as many indices as an attribute of their maker says (the buckets of
// distances): the attribute states its size. Of a smaller table rows would not be there that are
// asked for, and zero on both sides.
void AddStatedTables(const Graph& model, const Node& lookup, const FactorRule& rule,
                     DimSizes* sizes) {
  const std::vector<int64_t> stated = StatedByMakers(model, lookup);
  for (const std::string& name : lookup.op->offset_factors) {
    const DimFactors factor = {rule.Find(name)};
    for (size_t i = 0; i < lookup.inputs.size() && !stated.empty(); ++i) {
      const TensorType& type = model.type(lookup.inputs[i]);
      for (size_t d = 0; d < type.dims.size(); ++d) {
        const bool is_table = rule.operands[i][d] == factor;
        const bool is_stated = std::count(stated.begin(), stated.end(), type.dims[d].size) > 0;
        if (is_table && is_stated) StateSize(type, d, sizes);
      }
    }
  }
}

void AddModel(const Graph& model, DimSizes* sizes) {
  for (const Value& value : model.values()) sizes->AddTensor(value.type, nullptr);
  for (const Node& node : model.nodes()) {
    const auto operands = TypesOf(model, node.inputs);
    const auto results = TypesOf(model, node.outputs);
    const FactorRule rule = RuleOf(model, node);
    sizes->AddUse(rule, operands, std::vector<const Sharding*>(operands.size(), nullptr), results,
                  std::vector<const Sharding*>(results.size(), nullptr));
    AddStatedTables(model, node, rule, sizes);
  }
}

void AddSegment(const Segment& segment, DimSizes* sizes) {
  for (const Slot& slot : segment.slots) sizes->AddTensor(slot.type, &slot.sharding);
  for (const Instr& instr : segment.instrs) {
    if (instr.kind != InstrKind::kCompute || instr.op->collective) continue;
    const auto operands = TypesOf(segment, instr.inputs);
    const auto results = TypesOf(segment, instr.outputs);
    const absl::StatusOr<FactorRule> rule =
        RuleOf(*instr.op, OpUse{instr.attrs, operands, results});
    if (!rule.ok()) continue;  // Placement reports it
    sizes->AddUse(*rule, operands, ShardingsOf(segment, instr.inputs), results,
                  ShardingsOf(segment, instr.outputs));
  }
}

// Vectors that instructions read and none makes: packed from scalars that lie side by side
// (OpRole::kPack). They have as many elements as there are scalars.
void KeepPackedVectors(const Plan& plan, DimSizes* sizes) {
  std::set<std::string> made;
  for (const Segment& segment : plan.segments) {
    for (const Instr& instr : segment.instrs) {
      for (int slot : instr.outputs) made.insert(segment.slots[static_cast<size_t>(slot)].name);
    }
  }
  for (const Segment& segment : plan.segments) {
    for (const Instr& instr : segment.instrs) {
      for (int input : instr.inputs) {
        const Slot& slot = segment.slots[static_cast<size_t>(input)];
        const bool vector = slot.type.ndim() == 1 && slot.type.dtype == DType::kF64;
        if (vector && made.count(slot.name) == 0) sizes->KeepSizes(slot.type);
      }
    }
  }
}

// What is executed stays below this many elements a value.
constexpr int64_t kMostElements = int64_t{1} << 20;

// An error of small sizes is the proof's own: the plan's have been checked.
absl::Status OfMeaning(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("at small sizes, ", status.message(), " [meaning_v1]"));
}
template <typename T>
absl::StatusOr<T> OfMeaning(absl::StatusOr<T> result) {
  if (!result.ok()) return OfMeaning(result.status());
  return result;
}

absl::Status CheckSmall(const TensorType& type, const Sharding& sharding, const Mesh& mesh) {
  double elements = 1;
  for (const Dim& dim : type.dims) {
    elements *= static_cast<double>(LocalSize(dim, AxisList(), Mesh()));
  }
  if (elements > kMostElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of ", type.ToString(), " is too large to be executed [meaning_v1]"));
  }
  return OfMeaning(CheckSharding(type, sharding, mesh));
}

absl::StatusOr<Graph> SmallModel(const Graph& model, const DimSizes& sizes) {
  for (const Value& value : model.values()) {
    const TensorType type = sizes.Small(value.type);
    MGC_RETURN_IF_ERROR(CheckSmall(type, Sharding::Whole(type.ndim()), Mesh()));
  }
  return OfMeaning(Retype(model, [&](ValueId id) { return sizes.Small(model.type(id)); }));
}

absl::StatusOr<Segment> SmallSegment(const Segment& segment, const Mesh& mesh,
                                     const DimSizes& sizes) {
  Segment small = segment;
  for (Slot& slot : small.slots) {
    slot.type = sizes.Small(slot.type);
    MGC_RETURN_IF_ERROR(
        Annotate(CheckSmall(slot.type, slot.sharding, mesh), absl::StrCat("slot ", slot.name)));
  }
  for (Instr& instr : small.instrs) {
    if (instr.kind != InstrKind::kCompute || instr.op->collective) continue;
    const auto results = TypesOf(small, instr.outputs);
    instr.attrs = RetypedAttrs(*instr.op, instr.attrs, results);
    const auto operands = TypesOf(small, instr.inputs);
    MGC_RETURN_IF_ERROR(
        Annotate(OfMeaning(CheckMakes(*instr.op, OpUse{instr.attrs, operands, results})),
                 absl::StrCat("segment ", segment.name)));
  }
  return small;
}

PlanClass SmallClass(const PlanClass& real, const std::vector<int64_t>& kept,
                     const DimSizes& sizes) {
  PlanClass small;
  small.coordinate = real.coordinate;
  small.blocks = real.blocks;
  small.chunks = real.chunks;
  small.eval_chunks = real.eval_chunks;
  small.update = real.update;
  small.eval_update = real.eval_update;
  small.train = ProjectMicroBatches(real.train, kept);
  small.eval = ProjectMicroBatches(real.eval, kept);
  small.zeroed = real.zeroed;
  small.eval_zeroed = real.eval_zeroed;
  small.scalars = real.scalars;
  small.carried = real.carried;
  small.reports = real.reports;
  small.eval_reports = real.eval_reports;
  small.results = real.results;
  for (NamedTensor& result : small.results) result.type = sizes.Small(result.type);
  small.memory = real.memory;
  return small;
}

absl::StatusOr<Plan> Shrunk(const Plan& plan, const Mesh& mesh, const DimSizes& sizes) {
  Plan small;
  small.name = plan.name;
  small.mesh = mesh;
  MGC_ASSIGN_OR_RETURN(small.model, SmallModel(plan.model, sizes));
  for (const Segment& segment : plan.segments) {
    MGC_ASSIGN_OR_RETURN(Segment made, SmallSegment(segment, mesh, sizes));
    small.segments.push_back(std::move(made));
  }
  small.blocks = plan.blocks;
  for (ParamBlock& block : small.blocks) {
    for (ParamEntry& entry : block.entries) {
      entry.type = sizes.Small(entry.type);
      MGC_RETURN_IF_ERROR(CheckSmall(entry.type, entry.sharding, mesh));
      MGC_RETURN_IF_ERROR(CheckSmall(entry.type, entry.state_sharding, mesh));
    }
    for (NamedTensor& kept : block.kept) {
      kept.type = sizes.Small(kept.type);
      MGC_RETURN_IF_ERROR(CheckSmall(kept.type, kept.sharding, mesh));
    }
  }
  const std::vector<int64_t> kept = KeptMicroBatches(plan.num_micro_batches);
  small.num_micro_batches = static_cast<int64_t>(kept.size());
  small.stages = plan.stages;
  for (const PlanClass& c : plan.classes) small.classes.push_back(SmallClass(c, kept, sizes));
  for (const PlanClass& c : small.classes) {
    for (const NamedTensor& result : c.results) {
      MGC_RETURN_IF_ERROR(CheckSmall(result.type, result.sharding, mesh));
    }
  }
  return small;
}

// Axes that leave a rest of some dim.
AxisSet UnevenAxes(const Plan& plan) {
  AxisSet uneven;
  for (const Segment& segment : plan.segments) {
    for (const Slot& slot : segment.slots) {
      for (size_t d = 0; d < slot.type.dims.size(); ++d) {
        const AxisList& axes = slot.sharding.dims[d];
        if (slot.type.dims[d].size % plan.mesh.Size(axes) != 0) uneven |= axes.AsSet();
      }
    }
  }
  return uneven;
}

// Axes that meet: slots of one segment are laid out or owed over both.
std::vector<std::pair<int, int>> PairsOf(const Plan& plan, const std::vector<AxisId>& axes) {
  std::set<std::pair<int, int>> pairs;
  for (const Segment& segment : plan.segments) {
    AxisSet used;
    for (const Slot& slot : segment.slots) used |= slot.sharding.UsedAxes();
    for (size_t b = 0; b < axes.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (!used.Contains(axes[a]) || !used.Contains(axes[b])) continue;
        pairs.emplace(static_cast<int>(a), static_cast<int>(b));
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

// Sizes that are tried for an axis, the best first.
std::vector<SmallAxis> ChoicesOf(int64_t ranks, bool uneven) {
  constexpr int64_t kMostRanks = 8;  // at its own size
  std::vector<SmallAxis> choices = {{3, 2}, {2, 2}};
  if (uneven) choices.insert(choices.begin(), {4, 2});
  if (ranks > 2 && ranks <= kMostRanks) choices.push_back({ranks, ranks});
  return choices;
}

class Shrinking {
 public:
  Shrinking(const Plan& plan, CheckAffordable check) : plan_(plan), check_(check) {
    const AxisSet uneven = UnevenAxes(plan);
    const AxisId pipeline = PipelineAxis(plan.mesh);
    for (AxisId axis = 0; axis < plan.mesh.num_axes(); ++axis) {
      if (axis == pipeline) continue;
      axes_.push_back(axis);
      choices_.push_back(ChoicesOf(plan.mesh.size(axis), uneven.Contains(axis)));
    }
    pairs_ = PairsOf(plan, axes_);
  }

  // Takes worse sizes for as few axes as it can until all meshes have sizes of dims.
  absl::StatusOr<std::vector<Plan>> Run() {
    for (;;) {
      std::vector<SmallAxis> axes;
      for (const std::vector<SmallAxis>& choices : choices_) axes.push_back(choices[0]);
      std::vector<Plan> plans;
      absl::Status failed;
      for (const std::vector<int64_t>& sizes : CoveringMeshes(axes, pairs_)) {
        absl::StatusOr<Plan> small = On(sizes);
        if (small.ok()) {
          plans.push_back(*std::move(small));
          continue;
        }
        failed = small.status();
        if (!Lower(sizes)) return failed;
        break;
      }
      if (failed.ok()) return plans;
    }
  }

 private:
  // The plan with these many ranks of each axis.
  absl::StatusOr<Plan> On(const std::vector<int64_t>& sizes) const {
    AxisSet dropped;
    std::vector<int64_t> ranks;  // by axis of the plan
    for (const MeshAxis& axis : plan_.mesh.axes()) ranks.push_back(axis.size);
    for (size_t a = 0; a < axes_.size(); ++a) {
      ranks[static_cast<size_t>(axes_[a])] = sizes[a];
      if (sizes[a] == 1) dropped.Add(axes_[a]);
    }
    MGC_ASSIGN_OR_RETURN(const Plan plan, WithoutAxes(plan_, dropped));
    std::vector<MeshAxis> axes = plan.mesh.axes();
    ranks.erase(std::remove(ranks.begin(), ranks.end(), 1), ranks.end());
    for (size_t a = 0; a < axes.size(); ++a) axes[a].size = ranks[a];
    MGC_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::Create(axes));
    return ShrinkPlan(plan, mesh, check_);
  }

  // A worse choice for one axis, if that gives this mesh sizes, or else for all; false when there
  // is none left.
  bool Lower(const std::vector<int64_t>& sizes) {
    bool any = false;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (sizes[a] == 1 || choices_[a].size() == 1) continue;
      any = true;
      std::vector<int64_t> lowered = sizes;
      const bool most = sizes[a] == choices_[a][0].most;
      lowered[a] = most ? choices_[a][1].most : choices_[a][1].least;
      if (!On(lowered).ok()) continue;
      choices_[a].erase(choices_[a].begin());
      return true;
    }
    for (size_t a = 0; a < axes_.size() && any; ++a) {
      if (sizes[a] > 1 && choices_[a].size() > 1) choices_[a].erase(choices_[a].begin());
    }
    return any;
  }

  const Plan& plan_;
  const CheckAffordable check_;
  std::vector<AxisId> axes_;                     // all but pp
  std::vector<std::vector<SmallAxis>> choices_;  // by axis in axes_, the current one first
  std::vector<std::pair<int, int>> pairs_;       // of places in axes_
};

}  // namespace

absl::StatusOr<std::vector<Plan>> SmallPlans(const Plan& plan, CheckAffordable check) {
  return Shrinking(plan, check).Run();
}

absl::StatusOr<Plan> ShrinkPlan(const Plan& plan, const Mesh& mesh, CheckAffordable check) {
  DimSizes sizes(plan.mesh, mesh);
  AddModel(plan.model, &sizes);
  for (const Segment& segment : plan.segments) AddSegment(segment, &sizes);
  for (const ParamBlock& block : plan.blocks) {
    for (const ParamEntry& entry : block.entries) {
      sizes.AddTensor(entry.type, &entry.sharding);
      sizes.AddTensor(entry.type, &entry.state_sharding);
    }
  }
  KeepPackedVectors(plan, &sizes);
  // A small size that an attribute states stays as it is, and dims without a name are left alone if
  // that is small enough; else such a size shrinks too.
  constexpr DimSizes::Wishes kTries[] = {{false, true, false},
                                         {true, true, false},
                                         {false, false, false},
                                         {true, false, false},
                                         {true, true, true},
                                         {true, false, true},
                                         {false, true, false, true},
                                         {true, true, false, true},
                                         {true, true, true, true},
                                         {false, true, false, false, true},
                                         {true, true, false, false, true},
                                         {true, true, true, false, true},
                                         {false, true, false, false, true, true},
                                         {true, true, false, false, true, true},
                                         {true, true, true, false, true, true}};
  const auto affordable = [&](const DimSizes& made) -> absl::StatusOr<Plan> {
    MGC_ASSIGN_OR_RETURN(Plan plan_made, Shrunk(plan, mesh, made));
    MGC_RETURN_IF_ERROR(check(plan_made));
    return plan_made;
  };
  absl::StatusOr<Plan> small;
  for (const DimSizes::Wishes& wishes : kTries) {
    const absl::Status solved = sizes.Solve(wishes);
    small = solved.ok() ? affordable(sizes) : solved;
    if (small.ok()) return small;
  }
  // Where factors of many dims grow each other, the plan itself may be the smallest there is.
  return mesh == plan.mesh ? affordable(DimSizes(plan.mesh, mesh)) : small;
}

}  // namespace mgc
