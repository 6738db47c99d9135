#include "graph/verify/shrink/shrink.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/retype.h"
#include "graph/verify/common/slot_lists.h"
#include "graph/verify/shrink/dim_sizes.h"
#include "graph/verify/shrink/project_steps.h"

namespace mgc {
namespace {

std::vector<const TensorType*> TypesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<const TensorType*> types;
  types.reserve(ids.size());
  for (ValueId id : ids) types.push_back(&graph.type(id));
  return types;
}

void AddModel(const Graph& model, DimSizes* sizes) {
  for (const Value& value : model.values()) sizes->AddTensor(value.type, nullptr);
  for (const Node& node : model.nodes()) {
    const auto operands = TypesOf(model, node.inputs);
    const auto results = TypesOf(model, node.outputs);
    sizes->AddUse(RuleOf(model, node), operands,
                  std::vector<const Sharding*>(operands.size(), nullptr), results,
                  std::vector<const Sharding*>(results.size(), nullptr));
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

PlanClass SmallClass(const PlanClass& real, const std::vector<int64_t>& kept) {
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
  small.scalars = real.scalars;
  small.reports = real.reports;
  small.eval_reports = real.eval_reports;
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
  }
  const std::vector<int64_t> kept = KeptMicroBatches(plan.num_micro_batches);
  small.num_micro_batches = static_cast<int64_t>(kept.size());
  small.stages = plan.stages;
  for (const PlanClass& c : plan.classes) small.classes.push_back(SmallClass(c, kept));
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

}  // namespace

absl::StatusOr<std::vector<Mesh>> SmallMeshes(const Plan& plan) {
  using Pair = std::array<int64_t, 2>;  // ranks of an axis in both sets
  std::vector<Pair> pairs = {{3, 2}, {2, 3}, {4, 2}, {2, 4}, {3, 3}, {4, 3}, {3, 4}, {4, 4}};
  const AxisSet uneven = UnevenAxes(plan);
  const AxisId pipeline = PipelineAxis(plan.mesh);
  std::array<std::vector<MeshAxis>, 2> axes = {plan.mesh.axes(), plan.mesh.axes()};
  for (AxisId axis = 0; axis < plan.mesh.num_axes(); ++axis) {
    if (axis == pipeline) continue;
    const int64_t most = uneven.Contains(axis) ? 4 : 3;
    const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                   [most](const Pair& p) { return std::max(p[0], p[1]) >= most; });
    if (pair == pairs.end()) {
      return absl::InvalidArgumentError(
          "the mesh has more axes than can be told apart at small sizes [meaning_v1]");
    }
    for (size_t set = 0; set < 2; ++set) axes[set][static_cast<size_t>(axis)].size = (*pair)[set];
    pairs.erase(pair);
  }
  std::vector<Mesh> meshes;
  for (const std::vector<MeshAxis>& sizes : axes) {
    MGC_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Create(sizes));
    meshes.push_back(std::move(mesh));
  }
  return meshes;
}

absl::StatusOr<Plan> ShrinkPlan(const Plan& plan, const Mesh& mesh) {
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
  // A size that an attribute states stays as it is, and dims without a name are left alone if that
  // is small enough.
  constexpr DimSizes::Wishes kTries[] = {
      {false, true}, {true, true}, {false, false}, {true, false}};
  absl::StatusOr<Plan> small;
  for (const DimSizes::Wishes& wishes : kTries) {
    const absl::Status solved = sizes.Solve(wishes);
    small = solved.ok() ? Shrunk(plan, mesh, sizes) : solved;
    if (small.ok()) break;
  }
  return small;
}

}  // namespace mgc
