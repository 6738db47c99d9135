#include "graph/verify/meaning/run_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/eval/eval.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

TileView ViewOf(const InstrSite& site, const Slot& slot) {
  return {&slot.name, site.call->layer, &slot.type, &slot.sharding};
}

}  // namespace

const TensorType kScalarTile = {DType::kF64, {}};
const Sharding kWholeScalar = {};

const Slot& SlotOf(const InstrSite& site, int slot) {
  return site.segment->slots[static_cast<size_t>(slot)];
}

RunState::RunState(const PlanRun& run, Findings* findings)
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
  const Finding finding = FindingOf(status, place, "meaning_v2");
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
  if (run_.localize || IsMaximum(site, slot)) CompareWithModel(site, slot, tiles);
  store(site.class_index).Write(RangeOf(site, slot), ViewOf(site, slot), std::move(tiles));
}

void RunState::Poison(const InstrSite& site, int index) {
  store(site.class_index).Poison(RangeOf(site, SlotOf(site, index)));
}

void RunState::CompareWithModel(const InstrSite& site, const Slot& slot, const Tiles& tiles) {
  const bool forward = site.action->ref.kind == ActionKind::kForward;
  if (failed_ || !forward || !slot.sharding.Owed().empty()) return;
  const auto& all = run_.eval ? run_.expected.eval_values : run_.expected.values;
  const auto& values = all[static_cast<size_t>(site.action->ref.micro_batch)];
  const std::string name = NameForLayer(slot.name, site.call->layer);
  const auto found = values.find(name);
  if (found == values.end() || found->second.shape != SizesOf(slot.type)) return;
  for (size_t r = 0; r < tiles.size(); ++r) {
    const int64_t rank = ranks(site.class_index)[r];
    const ResidueTensor expected =
        CutTile(found->second, slot.type, slot.sharding, plan().mesh, rank);
    if (expected.real == tiles[r].real && expected.index == tiles[r].index) continue;
    return Fail(
        "meaning_v6", PlaceOf(site),
        absl::StrCat("`", name, "` ", ToString(slot.sharding, plan().mesh),
                     " differs from the model's, first on rank ", rank, " of the shrunk mesh"));
  }
}

}  // namespace mgc
