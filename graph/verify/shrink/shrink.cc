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
#include "graph/verify/shrink/dim_sizes.h"
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

// Of the sizes that are tried, those to execute.
class ShortestPlan {
 public:
  // All outlive it.
  ShortestPlan(const Plan& plan, const Mesh& mesh, StepWorkOf work)
      : plan_(plan), mesh_(mesh), work_(work) {}

  bool found() const { return found_.ok(); }
  // `solved`: whether `sizes` are. True where no others need to be tried.
  bool Try(const absl::Status& solved, const DimSizes& sizes) {
    if (!solved.ok()) return Fail(solved);
    if (!tried_.insert(sizes.Chosen()).second) return false;
    absl::StatusOr<Plan> small = Shrunk(plan_, mesh_, sizes);
    if (!small.ok()) return Fail(small.status());
    const double work = work_(*small);
    if (work > kMostWork) {
      return Fail(absl::InvalidArgumentError(absl::StrCat(
          "a step takes ", work, " products of numbers at small sizes, more than ", kMostWork)));
    }
    if (!found_.ok() || work < least_) {
      found_ = std::move(small);
      least_ = work;
    }
    return least_ <= kLittleWork;
  }
  absl::StatusOr<Plan> Take() && { return std::move(found_); }

 private:
  // Of one run, of which there are four; a proof takes less than half a minute then.
  static constexpr double kMostWork = 0x1p30;
  // A few seconds.
  static constexpr double kLittleWork = 0x1p27;

  bool Fail(const absl::Status& status) {
    if (!found_.ok()) found_ = status;
    return false;
  }

  const Plan& plan_;
  const Mesh& mesh_;
  const StepWorkOf work_;
  std::set<std::vector<int64_t>> tried_;
  absl::StatusOr<Plan> found_ = absl::UnknownError("no sizes have been tried");
  double least_ = 0;
};

}  // namespace

absl::StatusOr<Plan> ShrinkPlan(const Plan& plan, const Mesh& mesh, StepWorkOf work) {
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
  ShortestPlan shortest(plan, mesh, work);
  for (const DimSizes::Wishes& wishes : kTries) {
    if (shortest.Try(sizes.Solve(wishes), sizes)) break;
  }
  // Where factors of many dims grow each other, the plan itself may be the smallest there is.
  if (!shortest.found() && mesh == plan.mesh) {
    shortest.Try(absl::OkStatus(), DimSizes(plan.mesh, mesh));
  }
  return std::move(shortest).Take();
}

}  // namespace mgc
