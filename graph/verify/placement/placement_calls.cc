#include "graph/verify/placement/placement_calls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "graph/types/sharding_text.h"
#include "graph/verify/placement/placement_segment.h"

namespace mgc {
namespace {

constexpr int64_t kScalarBytes = 8;
constexpr int64_t kMostEntries = int64_t{1} << 22;  // of vectors read in one step

std::string Named(absl::string_view name) { return absl::StrCat("%", EscapeBytes(name)); }

bool IsScalar(const TensorType& type) { return type.dtype == DType::kF64 && type.dims.empty(); }

// A vector whose entries may have been written one by one.
bool IsVector(const Slot& slot) {
  return slot.type.dtype == DType::kF64 && slot.type.ndim() == 1 &&
         slot.type.dims[0].multiple == 1 && slot.sharding.dims[0].empty() &&
         slot.sharding.storage.empty();
}

AxisSet Without(AxisSet axes, AxisId axis) {
  if (axis >= 0) axes.Remove(axis);
  return axes;
}

}  // namespace

void Place(const PlacedValue& value, int64_t address, const Mesh& mesh, PlacedValues* space) {
  const int64_t elements = LocalElements(*value.type, *value.sharding, mesh);
  space->Put({address, address + elements * SizeOf(value.type->dtype)}, value);
}

ClassCalls::ClassCalls(const Plan& plan, const PlanClass& rank_class, bool eval,
                       StageShares* shares, Diagnostics* findings)
    : plan_(plan),
      rank_class_(rank_class),
      eval_(eval),
      place_(absl::StrCat("class ", rank_class.coordinate)),
      pipeline_(PipelineAxis(plan.mesh)),
      shares_(*shares),
      findings_(*findings) {}

void ClassCalls::RunOfChunk(const Call& call, ChunkValues* values) {
  Site site;
  site.call = &call;
  site.segment = &plan_.segments[static_cast<size_t>(call.segment)];
  site.values = values;
  Run(site);
}

void ClassCalls::RunOfUpdate(const Call& call, size_t ordinal) {
  Site site;
  site.call = &call;
  site.segment = &plan_.segments[static_cast<size_t>(call.segment)];
  site.of_stage = call.layer != kNoLayer;
  site.ordinal = ordinal;
  Run(site);
}

void ClassCalls::Run(const Site& site) {
  transient_.Clear();
  for (size_t i = 0; i < site.segment->instrs.size(); ++i) {
    const Instr& instr = site.segment->instrs[i];
    // Each result of a bucket comes from its own operand.
    const bool bucket = instr.kind == InstrKind::kStart;
    const std::vector<int>* classes = JoinedBy(instr);
    TiedSum most;
    std::vector<TiedSum> of_operand(instr.inputs.size());
    for (size_t k = 0; k < instr.inputs.size(); ++k) {
      TiedSum& sum = of_operand[k];
      Read(site, i, k, &sum);
      if (classes != nullptr) sum = {sum.times + 1, classes};
      if (sum.times > most.times) most = sum;
    }
    for (size_t k = 0; k < instr.outputs.size(); ++k) {
      Write(site, i, k, bucket ? of_operand[k] : most);
    }
  }
}

// The classes between which a start sums copies, null for all else.
const std::vector<int>* ClassCalls::JoinedBy(const Instr& instr) {
  if (!JoinsClasses(instr)) return nullptr;
  const auto [it, is_new] = joined_.try_emplace(&instr);
  if (is_new) it->second = *JoinedClasses(plan_.mesh, plan_.stages, instr);  // plan_c16
  return &it->second;
}

PlacedValues& ClassCalls::SpaceOf(const Site& site, const Slot& slot, int64_t* address) {
  const Binding& binding = site.call->bindings[static_cast<size_t>(slot.formal)];
  *address = slot.offset;
  if (slot.formal == 0) return transient_;
  *address += binding.offset;
  if (binding.base == BaseKind::kAbsolute || site.values == nullptr) return arena_;
  return (*site.values)[static_cast<size_t>(binding.base)];
}

// The parameter of which a slot holds the gradient, or a norm made of it; kNone for all else.
ValueId ClassCalls::NormOf(const Site& site, const Slot& slot) {
  int64_t address = 0;
  const PlacedValues& space = SpaceOf(site, slot, &address);
  if (IsScalar(slot.type)) {
    const PlacedValue* value = space.At(address);
    return value == nullptr ? kNone : value->norm_of;
  }
  const auto gradient = gradients_.find(address);
  return &space == &arena_ && gradient != gradients_.end() ? gradient->second : kNone;
}

void ClassCalls::Read(const Site& site, size_t instr, size_t operand, TiedSum* tied_sum) {
  const int index = site.segment->instrs[instr].inputs[operand];
  const Slot& slot = site.segment->slots[static_cast<size_t>(index)];
  int64_t address = 0;
  const PlacedValues& space = SpaceOf(site, slot, &address);
  const PlacedValue* value = space.At(address);
  if (value != nullptr && (SameStorage(*value->type, slot.type) || !IsVector(slot))) {
    ReadValue(site, instr, operand, *value, slot.type, slot.sharding, 0);
    *tied_sum = value->tied_sum;
    return;
  }
  if (IsVector(slot)) {
    ReadEntries(site, instr, operand, space, address);
    return;
  }
  const int64_t bytes =
      LocalElements(slot.type, slot.sharding, plan_.mesh) * SizeOf(slot.type.dtype);
  if (IsZero(space, address, address + bytes) && MayBeZero(site, instr, operand)) {
    if (!site.of_stage) ShareOf(site, instr, operand);
    return;
  }
  Add(site, instr, index, "placement_v7",
      absl::StrCat("reads ", Named(slot.name), " in ",
                   EscapeBytes(ToString(site.segment->formals[static_cast<size_t>(slot.formal)])),
                   " at ", slot.offset, ", where nothing before it has left a value"));
}

StageShare& ClassCalls::ShareOf(const Site& site, size_t instr, size_t operand) {
  StageShare& share = shares_[{site.ordinal, instr, operand}];
  if (share.reader.empty()) {
    const int slot = site.segment->instrs[instr].inputs[operand];
    share.reader = PlaceOf(plan_, *site.segment, instr);
    share.name = site.segment->slots[static_cast<size_t>(slot)].name;
  }
  return share;
}

void ClassCalls::ReadEntries(const Site& site, size_t instr, size_t operand,
                             const PlacedValues& space, int64_t address) {
  const int index = site.segment->instrs[instr].inputs[operand];
  const Slot& slot = site.segment->slots[static_cast<size_t>(index)];
  Sharding sharding = slot.sharding;
  sharding.dims.clear();
  const TensorType scalar{DType::kF64, {}};
  const int64_t entries = slot.type.dims[0].size;
  const int64_t end = address + entries * kScalarBytes;
  int64_t found = 0;
  const PlacedValue* before = nullptr;
  for (const auto& [range, value] : space.Overlapping({address, end})) {
    if (range.begin < address) continue;
    if (++entries_read_ > kMostEntries) {
      Add(site, instr, index, "placement_v12", "reads more entries of vectors than are looked at");
      return;
    }
    const int64_t entry = (range.begin - address) / kScalarBytes;
    if (IsScalar(*value.type) && (range.begin - address) % kScalarBytes == 0) ++found;
    ReadValue(site, instr, operand, value, scalar, sharding, entry);
    if (value.norm_of == kNone) continue;
    if (before != nullptr && value.norm_of <= before->norm_of) {
      Add(site, instr, index, "placement_v13",
          absl::StrCat("reads ", Named(slot.name), ", in which ", Named(before->name),
                       " stands before ", Named(value.name),
                       ", not in the order of the model's parameters: their sum would round "
                       "otherwise"));
    }
    before = &value;
  }
  const bool others_add = !site.of_stage && pipeline_ >= 0 && slot.sharding.sum.Contains(pipeline_);
  if (others_add) ShareOf(site, instr, operand).entries = entries;
  if (found == entries || (others_add && IsZero(space, address, end))) return;
  Add(site, instr, index, "placement_v7",
      absl::StrCat("reads ", entries, " entries of ", Named(slot.name), ", of which ", found,
                   " have been written"));
}

// One value, or entry of a vector.
void ClassCalls::ReadValue(const Site& site, size_t instr, size_t operand, const PlacedValue& value,
                           const TensorType& type, const Sharding& sharding, int64_t entry) {
  const int index = site.segment->instrs[instr].inputs[operand];
  const std::string name = Named(site.segment->slots[static_cast<size_t>(index)].name);
  const std::string mismatch = Mismatch(value, type, sharding);
  if (!mismatch.empty()) {
    Add(site, instr, index, "placement_v8", absl::StrCat("reads ", name, ", but ", mismatch));
    return;
  }
  if (pipeline_ < 0) return;
  const bool summed = sharding.sum.Contains(pipeline_);
  if (!value.of_stage && !site.of_stage && summed) ShareOf(site, instr, operand).owed_by_all = true;
  if (value.of_stage && !site.of_stage) {
    if (summed) {
      ++ShareOf(site, instr, operand).stages[entry];
    } else {
      Add(site, instr, index, "placement_v9",
          absl::StrCat("reads ", name,
                       " on all stages, but only this one has made it: a sum over "
                       "pp is owed and not paid"));
    }
  } else if (!value.of_stage && value.sharding->sum.Contains(pipeline_) != summed &&
             !site.of_stage) {
    Add(site, instr, index, "placement_v9",
        absl::StrCat("reads ", name, ", which owes ", summed ? "no" : "a", " sum over pp"));
  } else if (!value.of_stage && site.of_stage && value.sharding->sum.Contains(pipeline_)) {
    Add(site, instr, index, "placement_v9",
        absl::StrCat("reads ", name,
                     ", which owes a sum over pp: an all_reduce over pp is missing "
                     "before it"));
  }
}

std::string ClassCalls::Mismatch(const PlacedValue& value, const TensorType& type,
                                 const Sharding& sharding) const {
  const std::string there = absl::StrCat(
      Named(value.name), " ", value.type->ToString(), " ", ToString(*value.sharding, plan_.mesh),
      " stands there",
      value.by == nullptr ? ""
                          : absl::StrCat(", made by ", PlaceOf(plan_, *value.by, value.instr)));
  if (!SameStorage(*value.type, type)) {
    return absl::StrCat(there, ", wanted is ", type.ToString());
  }
  Sharding from = *value.sharding;
  Sharding to = sharding;
  from.sum = Without(from.sum, pipeline_);
  to.sum = Without(to.sum, pipeline_);
  if (from == to) return "";
  return absl::StrCat(there, ", wanted is ", ToString(sharding, plan_.mesh), ": ",
                      ExplainChange(from, to, plan_.mesh));
}

void ClassCalls::Write(const Site& site, size_t index, size_t result, const TiedSum& tied_sum) {
  const Instr& instr = site.segment->instrs[index];
  const std::vector<Slot>& slots = site.segment->slots;
  const Slot& slot = slots[static_cast<size_t>(instr.outputs[result])];
  int64_t address = 0;
  PlacedValues& space = SpaceOf(site, slot, &address);
  PlacedValue value;
  value.type = &slot.type;
  value.sharding = &slot.sharding;
  value.name = slot.name;
  value.by = site.segment;
  value.instr = index;
  value.of_stage = site.of_stage;
  // A gradient is of f32; scalars of f64, the norm and what comes of it, concern all parameters.
  if (!IsScalar(slot.type)) value.tied_sum = tied_sum;
  if (IsScalar(slot.type) && !instr.inputs.empty()) {
    const size_t from = instr.kind == InstrKind::kStart ? result : 0;
    value.norm_of = NormOf(site, slots[static_cast<size_t>(instr.inputs[from])]);
  }
  Place(value, address, plan_.mesh, &space);
}

// An accumulator that is added to in place, or with which a class that has nothing to add joins a
// sum, and what other stages make.
bool ClassCalls::MayBeZero(const Site& site, size_t instr, size_t operand) const {
  const Instr& at = site.segment->instrs[instr];
  const Slot& slot = site.segment->slots[static_cast<size_t>(at.inputs[operand])];
  if (!site.of_stage) return pipeline_ >= 0 && slot.sharding.sum.Contains(pipeline_);
  if (JoinsClasses(at)) return true;
  if (at.kind != InstrKind::kCompute || at.op->linearity != Linearity::kJoint) return false;
  return std::any_of(at.outputs.begin(), at.outputs.end(), [&](int out) {
    const Slot& result = site.segment->slots[static_cast<size_t>(out)];
    return result.formal == slot.formal && result.offset == slot.offset;
  });
}

bool ClassCalls::IsZero(const PlacedValues& space, int64_t begin, int64_t end) const {
  if (&space != &arena_) return false;
  const std::vector<Range>& zeroed = ZeroedRanges(rank_class_, eval_);
  return std::any_of(zeroed.begin(), zeroed.end(),
                     [&](const Range& range) { return range.begin <= begin && end <= range.end; });
}

void ClassCalls::Add(const Site& site, size_t instr, int slot, absl::string_view label,
                     absl::string_view text) {
  if (!reported_.insert({site.segment, instr, slot}).second) return;
  const bool layered = site.call->layer > kEmbeddingLayer;
  findings_.Add(label,
                absl::StrCat(place_, layered ? absl::StrCat(", layer ", site.call->layer) : "",
                             ", ", PlaceOf(plan_, *site.segment, instr)),
                text);
}

}  // namespace mgc
