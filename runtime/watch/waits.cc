#include "runtime/watch/waits.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/plan/fewer_micro_batches.h"
#include "runtime/run/where.h"
#include "runtime/watch/ages.h"

namespace mgc {
namespace {

constexpr size_t kMostNamed = 16;  // ranks in a sentence

std::string RankList(const std::vector<int64_t>& ranks) {
  const size_t shown = std::min(ranks.size(), kMostNamed);
  std::string text = absl::StrJoin(ranks.begin(), ranks.begin() + shown, ", ");
  if (shown < ranks.size()) absl::StrAppend(&text, " and ", ranks.size() - shown, " more");
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", text);
}

std::string RangeText(const RankRange& range) {
  if (range.size() == 1) return absl::StrCat("rank ", range.begin);
  return absl::StrCat("ranks ", range.begin, "-", range.end - 1);
}

std::string HostOf(const ProcessEntry& entry) {
  return EscapeBytes(absl::string_view(entry.host, strnlen(entry.host, sizeof(entry.host))));
}

// The call that the compute queue stands in, or an item is of; null where the plan lacks it.
const Call* CallAt(const StepClass& program, int64_t action, int64_t call) {
  if (action < 0 || action >= static_cast<int64_t>(program.actions.size())) return nullptr;
  const std::vector<Call>& calls = *program.actions[static_cast<size_t>(action)].calls;
  if (call < 0 || call >= static_cast<int64_t>(calls.size())) return nullptr;
  return &calls[static_cast<size_t>(call)];
}

}  // namespace

std::string Waits::NameOf(int64_t rank) const {
  const ProcessEntry& entry = board_.process(board_.ProcessOf(rank));
  return absl::StrCat("rank ", rank, " (pid ", entry.pid.get(), ", ", HostOf(entry), ")");
}

std::string Waits::NameOfProcess(int process) const {
  const ProcessEntry& entry = board_.process(process);
  return absl::StrCat("process ", process, " (pid ", entry.pid.get(), ", ", HostOf(entry), "), ",
                      RangeText(board_.RanksOf(process)));
}

// Whether the instruction that a rank stands at is in the plan, if it is inside of a call.
bool Waits::HasInstr(const Seen& seen) {
  const Call* const call = CallAt(seen.program(), seen.at.action.get(), seen.at.call.get());
  if (!seen.at.inside.get() || call == nullptr) return true;
  const auto& instrs = seen.tables->segments[static_cast<size_t>(call->segment)].segment->instrs;
  const int64_t at = seen.at.instr.get();
  return at >= 0 && at <= static_cast<int64_t>(instrs.size());
}

bool Waits::HasItem(const Seen& seen) {
  const CommItem item = ItemOf(seen.at);
  const StepClass& program = seen.program();
  if (item.transfer >= 0) return item.transfer < static_cast<int64_t>(program.transfers.size());
  const Call* const call = CallAt(program, item.action, item.call);
  if (call == nullptr) return false;
  const auto& starts = seen.tables->segments[static_cast<size_t>(call->segment)].starts;
  return item.exchange >= 0 && item.exchange < static_cast<int>(starts.size());
}

// Whoever writes the board, what it says is a plan there is and a number of micro-batches that its
// step may have.
const Waits::Tables& Waits::TablesOf(int32_t plan, int64_t micro_batches) const {
  const bool is_other = plan > 0 && plan <= static_cast<int64_t>(others_.size());
  const Plan& steps = is_other ? *others_[static_cast<size_t>(plan - 1)] : plan_;
  const int64_t whole = steps.num_micro_batches;
  const int64_t number = micro_batches < 1 || micro_batches > whole ? whole : micro_batches;
  const std::pair<int32_t, int64_t> key = {is_other ? plan : 0, number};
  const std::lock_guard<std::mutex> lock(making_);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  if (number == whole) return tables_.try_emplace(key, steps).first->second;
  return tables_.try_emplace(key, WithFewerMicroBatches(steps, number)).first->second;
}

Waits::Seen Waits::Look(int64_t rank) const {
  Seen seen;
  seen.rank = rank;
  seen.rank_class = ClassOfRank(plan_.mesh, rank);
  seen.at = board_.ranks()[static_cast<size_t>(rank)];
  const Tables& tables = TablesOf(seen.at.plan.get(), seen.at.micro_batches.get());
  seen.tables = seen.at.eval.get() ? &tables.eval : &tables.train;
  const bool at_end = seen.at.at_end.get();
  seen.has_item = !at_end && HasItem(seen);
  seen.is_sane = HasInstr(seen) && (at_end || seen.has_item);
  return seen;
}

// `1F5 layers.3.mlp.up (model.cc:42)`.
std::string Waits::PlaceOf(const Seen& seen) const {
  const RankProgress& at = seen.at;
  const int64_t action = at.action.get();
  if (action < 0 || action >= static_cast<int64_t>(seen.program().actions.size())) return "its end";
  std::string text = NameOfAction(*seen.tables, seen.rank_class, static_cast<size_t>(action));
  const Call* const call = CallAt(seen.program(), action, at.call.get());
  if (!at.inside.get() || call == nullptr) return text;
  const Segment& segment = *seen.tables->segments[static_cast<size_t>(call->segment)].segment;
  const size_t number = static_cast<size_t>(at.instr.get());
  if (number >= segment.instrs.size()) return text;
  const Instr& instr = segment.instrs[number];
  if (instr.outputs.empty()) return absl::StrCat(text, " ", segment.name, "[", number, "]");
  const Slot& slot = segment.slots[static_cast<size_t>(instr.outputs[0])];
  return absl::StrCat(text, " ", NameForLayer(slot.name, call->layer),
                      SourceText(seen.tables->plan.model, instr));
}

std::vector<int64_t> Waits::PartnersOf(const Seen& seen) const {
  const CommItem item = ItemOf(seen.at);
  if (item.transfer >= 0) {
    const StepTransfer& transfer = seen.program().transfers[static_cast<size_t>(item.transfer)];
    const AxisId pipeline = PipelineAxis(plan_.mesh);
    const int64_t stride = pipeline < 0 ? 0 : plan_.mesh.stride(pipeline);
    return {seen.rank + (transfer.peer_class - seen.rank_class) * stride};
  }
  const InstrCollective& collective = CollectiveOf(*seen.tables, seen.rank_class, item);
  std::vector<int64_t> partners;
  for (int64_t member : plan_.mesh.Group(seen.rank, collective.axes())) {
    const bool joins = collective.classes.empty() ||
                       std::binary_search(collective.classes.begin(), collective.classes.end(),
                                          ClassOfRank(plan_.mesh, member));
    if (member != seen.rank && joins) partners.push_back(member);
  }
  return partners;
}

// Whether the partner of a rank that stands at an item stands there too.
bool Waits::StandAtOne(const Seen& seen, const Seen& partner) {
  if (partner.at.steps.get() != seen.at.steps.get()) return false;
  if (!partner.is_sane || !partner.has_item || partner.tables != seen.tables) return false;
  if (!partner.at.in_flight.get() && partner.at.activity.get() == RankActivity::kComputing) {
    return false;
  }
  const CommItem mine = ItemOf(seen.at);
  const CommItem theirs = ItemOf(partner.at);
  if (mine.transfer >= 0) {
    return theirs.transfer ==
           seen.program().transfers[static_cast<size_t>(mine.transfer)].peer_index;
  }
  if (theirs.transfer >= 0) return false;
  const InstrCollective& a = CollectiveOf(*seen.tables, seen.rank_class, mine);
  const InstrCollective& b = CollectiveOf(*seen.tables, partner.rank_class, theirs);
  return a.group == b.group && a.kind() == b.kind();
}

int64_t Waits::BlockerOf(const Seen& seen) const {
  if (seen.at.activity.get() != RankActivity::kWaiting) return -1;
  if (!seen.is_sane || !seen.has_item) return -1;
  int64_t blocker = -1;
  for (int64_t rank : PartnersOf(seen)) {
    if (rank < 0 || rank >= board_.num_ranks()) continue;
    const Seen partner = Look(rank);
    if (StandAtOne(seen, partner)) continue;
    if (blocker < 0 || partner.at.activity.get() == RankActivity::kComputing) blocker = rank;
  }
  return blocker;
}

std::string Waits::Doing(const Seen& seen, int64_t now_ns) const {
  const RankProgress& at = seen.at;
  const RankActivity activity = at.activity.get();
  const std::string time = Seconds(AgeAt(now_ns, at.since_ns.get()));
  // Also one that nothing has been heard of.
  const bool begun = at.since_ns.get() > 0 || at.inside.get();
  if (!begun && activity == RankActivity::kOutside) return "has not begun a step";
  if (!seen.is_sane) return "is at a place that the plan lacks";
  const auto item = [&seen] { return NameOfItem(*seen.tables, seen.rank_class, ItemOf(seen.at)); };
  if (const int64_t since = at.item_since_ns.get(); since > 0 && seen.has_item) {
    return absl::StrCat("has been running ", item(), " for ", Seconds(AgeAt(now_ns, since)));
  }
  switch (activity) {
    case RankActivity::kComputing: {
      const int64_t usual = at.usual_ns.get();
      return absl::StrCat("has been computing ", PlaceOf(seen), " for ", time,
                          usual > 0 ? absl::StrCat(", usually ", Seconds(usual)) : "");
    }
    case RankActivity::kReady:
      return absl::StrCat("is ready to compute ", PlaceOf(seen), " since ", time);
    case RankActivity::kWaiting:
    case RankActivity::kFinished:
      if (!seen.has_item) return "has ended its step";
      return absl::StrCat("has waited for ", item(), at.transfer.get() >= 0 ? " with " : " among ",
                          RankList(PartnersOf(seen)), " for ", time);
    case RankActivity::kHeld:
      return absl::StrCat("has waited for its checkpoint to be written, which has not come on for ",
                          time);
    case RankActivity::kOutside:
      break;
  }
  return absl::StrCat("has been between steps for ", time);
}

std::string Waits::StateOf(int64_t rank, int64_t now_ns) const {
  const Seen seen = Look(rank);
  std::string text = Doing(seen, now_ns);
  const int64_t blocker = BlockerOf(seen);
  if (blocker >= 0) absl::StrAppend(&text, ", which lacks rank ", blocker);
  return text;
}

std::string Waits::Table(int64_t now_ns) const {
  std::string text;
  for (int process = 0; process < board_.num_processes(); ++process) {
    const ProcessEntry& entry = board_.process(process);
    absl::StrAppend(&text, NameOfProcess(process));
    switch (entry.stage.get()) {
      case ProcessStage::kAbsent:
        absl::StrAppend(&text, ": has not begun");
        break;
      case ProcessStage::kStarting:
        absl::StrAppend(&text, ": starts");
        break;
      case ProcessStage::kAgreeing:
        absl::StrAppend(&text, ": waits for the other processes between steps");
        break;
      case ProcessStage::kEnded:
        absl::StrAppend(&text, ": has ended");
        break;
      case ProcessStage::kRunning:
        break;
    }
    absl::StrAppend(&text, "\n");
    const RankRange range = board_.RanksOf(process);
    for (int64_t rank = range.begin; rank < range.end; ++rank) {
      const int64_t steps = board_.ranks()[static_cast<size_t>(rank)].steps.get();
      absl::StrAppend(&text, "  rank ", rank, ", step ", steps, ": ", StateOf(rank, now_ns), "\n");
    }
  }
  return text;
}

std::string Waits::Sentence(const Culprit& culprit) const {
  std::string text = absl::StrCat(NameOf(culprit.rank), " ", culprit.doing);
  if (!culprit.waits.empty()) {
    absl::StrAppend(&text, "; ", RankList(culprit.waits),
                    culprit.waits.size() == 1 ? " waits for it" : " wait for it");
  }
  return text;
}

}  // namespace mgc
