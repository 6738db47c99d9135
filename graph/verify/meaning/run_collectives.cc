#include "graph/verify/meaning/run_collectives.h"

#include <utility>

#include "graph/plan/instr_collective.h"

namespace mgc {
namespace {

// The start that belongs to a wait.
InstrSite StartOf(const InstrSite& wait) {
  InstrSite start = wait;
  for (const Instr& instr : wait.segment->instrs) {
    if (instr.kind == InstrKind::kStart && instr.collective == wait.instr->collective) {
      start.instr = &instr;
    }
  }
  return start;
}

}  // namespace

void CollectiveRuns::Start(const InstrSite& site) {
  const size_t c = static_cast<size_t>(site.class_index);
  if (!WaitedFor(*site.segment)[static_cast<size_t>(site.instr->collective)]) {
    running_[c].push_back({site, started_[c]++});
  }
  std::vector<Tiles>& operands = pending_[KeyOf(site)];
  for (int slot : site.instr->inputs) {
    const Tiles* tiles = state_.Read(site, slot);
    if (tiles == nullptr) return;
    operands.push_back(*tiles);
  }
  for (int slot : site.instr->outputs) state_.Poison(site, slot);
}

void CollectiveRuns::Complete(absl::Span<const InstrSite> sites) {
  std::vector<std::vector<Tiles>> results(sites.size());
  for (size_t part = 0; part < sites[0].instr->outputs.size(); ++part) {
    GroupTensors groups;
    for (size_t s = 0; s < sites.size(); ++s) {
      results[s].push_back(Exchange(sites, s, part, &groups));
      if (state_.failed()) return;
    }
  }
  for (size_t s = 0; s < sites.size(); ++s) {
    pending_[KeyOf(sites[s])] = std::move(results[s]);
  }
}

void CollectiveRuns::Wait(const InstrSite& site) { Finish(StartOf(site)); }

void CollectiveRuns::Await(const InstrSite& site) {
  const size_t c = static_cast<size_t>(site.class_index);
  std::deque<Running>& running = running_[c];
  while (!running.empty() && running.front().start < started_[c] - site.call->running) {
    Finish(running.front().site);
    running.pop_front();
  }
}

absl::StatusOr<CollectiveUse> CollectiveRuns::UseOf(const InstrSite& site, size_t part) const {
  const Slot& from = SlotOf(site, site.instr->inputs[part]);
  const Slot& to = SlotOf(site, site.instr->outputs[part]);
  absl::StatusOr<mgc::Collective> collective = CollectiveOfPart(*site.segment, *site.instr, part);
  if (!collective.ok()) return collective.status();
  return CollectiveUse{*std::move(collective), from.type, from.sharding, to.sharding,
                       state_.plan().mesh};
}

void CollectiveRuns::RunLocal(const InstrSite& site) {
  for (size_t part = 0; part < site.instr->outputs.size() && !state_.failed(); ++part) {
    const Tiles* operand = state_.Read(site, site.instr->inputs[part]);
    if (operand == nullptr) return;
    const absl::StatusOr<CollectiveUse> use = UseOf(site, part);
    if (!use.ok()) return state_.Fail(use.status(), state_.PlaceOf(site));
    Tiles made;
    for (int64_t rank : state_.ranks(site.class_index)) {
      made.push_back(CollectiveTile<ResidueModel>(scalars_, *use, rank,
                                                  [&](int64_t member) -> const ResidueTensor& {
                                                    return (*operand)[state_.IndexInClass(member)];
                                                  }));
    }
    state_.Write(site, site.instr->outputs[part], std::move(made));
  }
}

Tiles CollectiveRuns::Exchange(absl::Span<const InstrSite> sites, size_t s, size_t part,
                               GroupTensors* groups) {
  const InstrSite& site = sites[s];
  if (JoinsClasses(*site.instr)) return SumOverSites(sites, part);
  const absl::StatusOr<CollectiveUse> use = UseOf(site, part);
  if (!use.ok()) {
    state_.Fail(use.status(), state_.PlaceOf(site));
    return {};
  }
  const AxisId pipeline = PipelineAxis(state_.plan().mesh);
  const bool joins = pipeline >= 0 && use->collective.axes.Contains(pipeline);
  const auto tile_of = [&](int64_t member) -> const ResidueTensor& {
    const size_t at =
        joins ? SiteOfClass(sites, state_.plan().mesh.Coordinate(member, pipeline)) : s;
    return pending_[KeyOf(sites[at])][part][state_.IndexInClass(member)];
  };
  Tiles made;
  for (int64_t rank : state_.ranks(site.class_index)) {
    const auto [group, is_new] = groups->try_emplace({site.instr, use->Members(rank).front()});
    if (is_new) group->second = GroupTensor(scalars_, *use, rank, tile_of);
    made.push_back(TileOfGroup(scalars_, *use, group->second, rank));
  }
  // A wrong maximum cancels out of a softmax, in exact numbers; in floats it overflows.
  if (use->collective.kind == CollectiveKind::kAllReduceMax) {
    state_.CompareForward(site, SlotOf(site, site.instr->outputs[part]), made);
  }
  return made;
}

size_t CollectiveRuns::SiteOfClass(absl::Span<const InstrSite> sites, int64_t coordinate) const {
  for (size_t s = 0; s < sites.size(); ++s) {
    const size_t c = static_cast<size_t>(sites[s].class_index);
    if (state_.plan().classes[c].coordinate == coordinate) return s;
  }
  return 0;
}

// Tied weights: the gradients of the classes that hold copies are added.
Tiles CollectiveRuns::SumOverSites(absl::Span<const InstrSite> sites, size_t part) {
  Tiles sum = pending_[KeyOf(sites[0])][part];
  for (size_t s = 1; s < sites.size(); ++s) {
    const Tiles& more = pending_[KeyOf(sites[s])][part];
    for (size_t r = 0; r < sum.size(); ++r) {
      for (size_t i = 0; i < sum[r].real.size(); ++i) {
        sum[r].real[i] = scalars_.Add(sum[r].real[i], more[r].real[i]);
      }
    }
  }
  return sum;
}

void CollectiveRuns::Finish(const InstrSite& site) {
  const auto found = pending_.find(KeyOf(site));
  if (found == pending_.end()) return;
  std::vector<Tiles> results = std::move(found->second);
  pending_.erase(found);
  for (size_t part = 0; part < results.size() && !state_.failed(); ++part) {
    state_.Write(site, site.instr->outputs[part], std::move(results[part]));
  }
}

}  // namespace mgc
