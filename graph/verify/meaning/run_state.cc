#include "graph/verify/meaning/run_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/eval/eval.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/verify/common/finding.h"

namespace mgc {
namespace {

TileView ViewOf(const InstrSite& site, const Slot& slot) {
  return {&slot.name, site.call->layer, &slot.type, &slot.sharding};
}

Sharding WithoutSums(Sharding sharding) {
  sharding.sum = {};
  return sharding;
}

}  // namespace

const TensorType kScalarTile = {DType::kF64, {}};
const Sharding kWholeScalar = {};

const Slot& SlotOf(const InstrSite& site, int slot) {
  return site.segment->slots[static_cast<size_t>(slot)];
}

RunState::RunState(const PlanRun& run, Diagnostics* findings)
    : run_(run), findings_(*findings), bound_(run.small) {
  for (const Node& node : plan().model.nodes()) {
    if (node.op->name != "reduce_max") continue;
    for (ValueId value : node.outputs) maxima_.insert(plan().model.value(value).name);
  }
  index_in_class_.resize(static_cast<size_t>(plan().mesh.world_size()));
  for (const PlanClass& c : plan().classes) {
    ranks_.push_back(RanksOfClass(plan(), c.coordinate));
    stores_.emplace_back(plan().mesh, static_cast<int>(ranks_.back().size()));
    for (size_t i = 0; i < ranks_.back().size(); ++i) {
      index_in_class_[static_cast<size_t>(ranks_.back()[i])] = i;
    }
  }
}

bool RunState::IsMaximum(const InstrSite& site, const Slot& slot) {
  const auto [it, is_new] = is_maximum_.try_emplace(&slot, false);
  if (is_new) it->second = maxima_.count(NameForLayer(slot.name, site.call->layer)) > 0;
  return it->second;
}

void RunState::Fail(absl::string_view label, absl::string_view place, absl::string_view text) {
  if (failed_) return;
  failed_ = true;
  findings_.Add(label, place, text);
}

void RunState::Fail(const absl::Status& status, absl::string_view place) {
  const Diagnostic finding = FindingOf(status, place, "meaning_v2");
  Fail(finding.label, finding.place, finding.text);
}

std::string RunState::PlaceOf(const InstrSite& site) const {
  const PlanClass& c = plan().classes[static_cast<size_t>(site.class_index)];
  const ActionRef& ref = site.action->ref;
  const std::vector<Chunk>& chunks = run_.eval ? c.eval_chunks : c.chunks;
  return absl::StrCat("class ", c.coordinate, ", ", NameOf(ref, chunks), ", segment ",
                      site.segment->name, ", instruction ",
                      site.instr - site.segment->instrs.data(),
                      site.instr->op != nullptr ? " " + site.instr->op->name : "");
}

Range RunState::RangeOf(const InstrSite& site, const Slot& slot) const {
  const Binding& binding = site.call->bindings[static_cast<size_t>(slot.formal)];
  const int64_t begin = AddressOf(binding, *site.action) + slot.offset;
  return {begin, begin + slot.bytes};
}

const Tiles* RunState::Read(const InstrSite& site, int index) {
  const Slot& slot = SlotOf(site, index);
  absl::StatusOr<const Tiles*> tiles =
      store(site.class_index).Read(RangeOf(site, slot), ViewOf(site, slot));
  if (tiles.ok()) return *tiles;
  Fail(tiles.status(), PlaceOf(site));
  return nullptr;
}

void RunState::Write(const InstrSite& site, int index, Tiles tiles) {
  const Slot& slot = SlotOf(site, index);
  if (run_.localize || IsMaximum(site, slot)) CompareForward(site, slot, tiles);
  if (run_.localize) CompareBackward(site, slot, tiles);
  store(site.class_index).Write(RangeOf(site, slot), ViewOf(site, slot), std::move(tiles));
}

void RunState::Poison(const InstrSite& site, int index) {
  store(site.class_index).Poison(RangeOf(site, SlotOf(site, index)));
}

bool RunState::IsOfClass(const Sharding& sharding) const {
  const AxisId pipeline = PipelineAxis(plan().mesh);
  return sharding.max.empty() && (pipeline < 0 || !sharding.sum.Contains(pipeline));
}

Tiles RunState::Paid(const InstrSite& site, const AxisSet& owed, Tiles tiles) const {
  if (owed.empty()) return tiles;
  const std::vector<int64_t>& members = ranks(site.class_index);
  const auto together = [&](int64_t a, int64_t b) {
    for (AxisId axis = 0; axis < plan().mesh.num_axes(); ++axis) {
      const Mesh& mesh = plan().mesh;
      if (!owed.Contains(axis) && mesh.Coordinate(a, axis) != mesh.Coordinate(b, axis))
        return false;
    }
    return true;
  };
  Tiles paid = tiles;
  for (size_t r = 0; r < tiles.size(); ++r) {
    for (size_t o = 0; o < tiles.size(); ++o) {
      if (o == r || !together(members[r], members[o])) continue;
      for (size_t i = 0; i < tiles[o].real.size(); ++i) {
        paid[r].real[i] = paid[r].real[i] + tiles[o].real[i];
      }
    }
  }
  return paid;
}

void RunState::CompareForward(const InstrSite& site, const Slot& slot, const Tiles& tiles) {
  const bool forward = site.action->ref.kind == ActionKind::kForward;
  if (failed_ || !forward || !IsOfClass(slot.sharding)) return;
  const auto& all = run_.eval ? run_.expected.eval_values : run_.expected.values;
  const auto& values = all[static_cast<size_t>(site.action->ref.micro_batch)];
  const std::string name = NameForLayer(slot.name, site.call->layer);
  const auto found = values.find(std::string(absl::StripSuffix(name, ".part")));
  if (found == values.end() || found->second.shape != SizesOf(slot.type)) return;
  const Tiles paid = Paid(site, slot.sharding.sum, tiles);
  const Sharding sharding = WithoutSums(slot.sharding);
  for (size_t r = 0; r < paid.size(); ++r) {
    const int64_t rank = ranks(site.class_index)[r];
    const ResidueTensor expected = CutTile(found->second, slot.type, sharding, plan().mesh, rank);
    if (expected.real == paid[r].real && expected.index == paid[r].index) continue;
    return Fail(
        "meaning_v6", PlaceOf(site),
        absl::StrCat("`", name, "` ", ToString(slot.sharding, plan().mesh),
                     " differs from the model's, first on rank ", rank, " of the shrunk mesh"));
  }
}

// Sums over micro-batches and pieces of values are left to what is made of them.
void RunState::CompareBackward(const InstrSite& site, const Slot& slot, const Tiles& tiles) {
  const bool backward =
      site.action->ref.kind == ActionKind::kBackward && site.instr->phase == Phase::kBackward;
  const bool is_sum =
      site.segment->formals[static_cast<size_t>(slot.formal)].region == Region::kGrads;
  if (failed_ || !backward || !IsOfClass(slot.sharding)) return;
  if (is_sum || slot.type.dtype == DType::kI64) return;
  const BackwardValues& known =
      run_.expected.backward[static_cast<size_t>(site.action->ref.micro_batch)];
  if (!known.HasShape(SizesOf(slot.type))) return;
  const Tiles paid = Paid(site, slot.sharding.sum, tiles);
  const Sharding sharding = WithoutSums(slot.sharding);
  for (size_t r = 0; r < paid.size(); ++r) {
    const int64_t rank = ranks(site.class_index)[r];
    if (known.Has(paid[r], slot.type, sharding, plan().mesh, rank)) continue;
    const int layer = site.call->layer;
    return Fail("meaning_v6", PlaceOf(site),
                absl::StrCat("`", NameForLayer(slot.name, layer), "` ",
                             ToString(slot.sharding, plan().mesh), ", ",
                             NameForLayer(site.instr->origin, layer),
                             ", is nothing that a single device computes, first on rank ", rank,
                             " of the shrunk mesh"));
  }
}

}  // namespace mgc
