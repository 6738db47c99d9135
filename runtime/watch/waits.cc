#include "runtime/watch/waits.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "runtime/run/where.h"

namespace mgc {
namespace {

constexpr size_t kMostNamed = 16;  // ranks in a sentence
// An action may take so many times what it has ever taken.
constexpr int64_t kTimesUsual = 5;
// What a wait gets beyond that: who is waited for is late first, and is to be named.
constexpr int64_t kWaitSlackNs = 1'000'000'000;

std::string Seconds(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  const double seconds = static_cast<double>(ns) / 1e9;
  if (ns < 100'000'000) return absl::StrFormat("%.0f ms", seconds * 1e3);
  return absl::StrFormat("%.1f s", seconds);
}

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

// `, at model.cc:42`, of an instruction that came from there.
std::string SourceOf(const Graph& model, const Instr& instr) {
  const int32_t file = instr.loc.file;
  if (file < 0 || static_cast<size_t>(file) >= model.files().size()) return "";
  return absl::StrCat(" (", model.files()[static_cast<size_t>(file)], ":", instr.loc.line, ")");
}

}  // namespace

int Waits::ClassOf(int64_t rank) const {
  const AxisId pipeline = PipelineAxis(plan_.mesh);
  return pipeline < 0 ? 0 : static_cast<int>(plan_.mesh.Coordinate(rank, pipeline));
}

std::string Waits::NameOf(int64_t rank) const {
  const ProcessEntry& entry = board_.process(board_.ProcessOf(rank));
  return absl::StrCat("rank ", rank, " (pid ", entry.pid.get(), ", ", HostOf(entry), ")");
}

std::string Waits::NameOfProcess(int process) const {
  const ProcessEntry& entry = board_.process(process);
  return absl::StrCat("process ", process, " (pid ", entry.pid.get(), ", ", HostOf(entry), "), ",
                      RangeText(board_.RanksOf(process)));
}

// Whether the places that a rank publishes are in the plan: a board may be a file of anything.
bool Waits::IsSane(int64_t rank) const {
  const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
  const StepTables& tables = TablesOf(progress);
  const StepClass& program = tables.classes[static_cast<size_t>(ClassOf(rank))];
  const auto has_call = [&](int64_t action, int64_t call) {
    if (action < 0 || action >= static_cast<int64_t>(program.actions.size())) return false;
    const auto& calls = *program.actions[static_cast<size_t>(action)].calls;
    return call >= 0 && call < static_cast<int64_t>(calls.size());
  };
  if (progress.inside.get() && has_call(progress.action.get(), progress.call.get())) {
    const Call& call = (*program.actions[static_cast<size_t>(progress.action.get())]
                             .calls)[static_cast<size_t>(progress.call.get())];
    const auto& instrs = tables.segments[static_cast<size_t>(call.segment)].segment->instrs;
    if (progress.instr.get() < 0 || progress.instr.get() > static_cast<int64_t>(instrs.size())) {
      return false;
    }
  }
  const CommItem item = ItemOf(progress);
  if (progress.at_end.get()) return true;
  if (item.transfer >= 0) return item.transfer < static_cast<int64_t>(program.transfers.size());
  if (!has_call(item.action, item.call)) return false;
  const Call& call =
      (*program.actions[static_cast<size_t>(item.action)].calls)[static_cast<size_t>(item.call)];
  const auto& starts = tables.segments[static_cast<size_t>(call.segment)].starts;
  return item.exchange >= 0 && item.exchange < static_cast<int>(starts.size());
}

// `1F5 layers.3.mlp.up (model.cc:42)`.
std::string Waits::PlaceOf(int64_t rank) const {
  const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
  const StepTables& tables = TablesOf(progress);
  const StepClass& program = tables.classes[static_cast<size_t>(ClassOf(rank))];
  const size_t action = static_cast<size_t>(progress.action.get());
  if (progress.action.get() < 0 || action >= program.actions.size()) return "its end";
  std::string text = NameOfAction(tables, ClassOf(rank), action);
  const std::vector<Call>& calls = *program.actions[action].calls;
  const size_t call = static_cast<size_t>(progress.call.get());
  if (!progress.inside.get() || progress.call.get() < 0 || call >= calls.size()) return text;
  const Segment& segment = *tables.segments[static_cast<size_t>(calls[call].segment)].segment;
  const size_t at = static_cast<size_t>(progress.instr.get());
  if (at >= segment.instrs.size()) return text;
  const Instr& instr = segment.instrs[at];
  if (instr.outputs.empty()) return absl::StrCat(text, " ", segment.name, "[", at, "]");
  const Slot& slot = segment.slots[static_cast<size_t>(instr.outputs[0])];
  return absl::StrCat(text, " ", NameForLayer(slot.name, calls[call].layer),
                      SourceOf(plan_.model, instr));
}

std::vector<int64_t> Waits::MembersOf(int64_t rank, const CommItem& item) const {
  const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
  const StepTables& tables = TablesOf(progress);
  const int own = ClassOf(rank);
  if (item.transfer >= 0) {
    const StepTransfer& transfer =
        tables.classes[static_cast<size_t>(own)].transfers[static_cast<size_t>(item.transfer)];
    const AxisId pipeline = PipelineAxis(plan_.mesh);
    const int64_t stride = pipeline < 0 ? 0 : plan_.mesh.stride(pipeline);
    return {rank + (transfer.peer_class - own) * stride};
  }
  const InstrCollective& collective = CollectiveOf(tables, own, item);
  std::vector<int64_t> members;
  for (int64_t member : plan_.mesh.Group(rank, collective.axes())) {
    const bool joins =
        collective.classes.empty() ||
        std::binary_search(collective.classes.begin(), collective.classes.end(), ClassOf(member));
    if (member != rank && joins) members.push_back(member);
  }
  return members;
}

bool Waits::StandsAt(int64_t member, int64_t rank, const CommItem& item) const {
  const RankProgress& theirs = board_.ranks()[static_cast<size_t>(member)];
  const RankProgress& mine = board_.ranks()[static_cast<size_t>(rank)];
  if (theirs.steps.get() != mine.steps.get() || theirs.at_end.get() || !IsSane(member)) {
    return false;
  }
  if (!theirs.in_flight.get() && theirs.activity.get() == RankActivity::kComputing) return false;
  const CommItem at = ItemOf(theirs);
  const StepTables& tables = TablesOf(mine);
  if (item.transfer >= 0) {
    const StepTransfer& transfer = tables.classes[static_cast<size_t>(ClassOf(rank))]
                                       .transfers[static_cast<size_t>(item.transfer)];
    return at.transfer == transfer.peer_index;
  }
  if (at.transfer >= 0) return false;
  const InstrCollective& a = CollectiveOf(tables, ClassOf(rank), item);
  const InstrCollective& b = CollectiveOf(tables, ClassOf(member), at);
  return a.group == b.group && a.kind() == b.kind();
}

int64_t Waits::BlockerOf(int64_t rank) const {
  const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
  if (progress.activity.get() != RankActivity::kWaiting || progress.at_end.get()) return -1;
  if (!IsSane(rank)) return -1;
  const CommItem item = ItemOf(progress);
  int64_t blocker = -1;
  for (int64_t member : MembersOf(rank, item)) {
    if (member < 0 || member >= board_.num_ranks() || StandsAt(member, rank, item)) continue;
    const auto activity = board_.ranks()[static_cast<size_t>(member)].activity.get();
    if (blocker < 0 || activity == RankActivity::kComputing) blocker = member;
  }
  return blocker;
}

int64_t Waits::EndOfChain(int64_t rank) const {
  std::vector<int64_t> seen;
  for (;;) {
    seen.push_back(rank);
    const int64_t next = BlockerOf(rank);
    if (next < 0 || std::find(seen.begin(), seen.end(), next) != seen.end()) return rank;
    rank = next;
  }
}

std::string Waits::Doing(int64_t rank, int64_t now_ns) const {
  const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
  const std::string time = Seconds(std::max<int64_t>(0, now_ns - progress.since_ns.get()));
  // Also one that nothing has been heard of.
  const bool begun = progress.since_ns.get() > 0 || progress.inside.get();
  if (!begun && progress.activity.get() == RankActivity::kOutside) return "has not begun a step";
  if (!IsSane(rank)) return "is at a place that the plan lacks";
  if (const int64_t since = progress.item_since_ns.get(); since > 0) {
    return absl::StrCat("has been running ",
                        NameOfItem(TablesOf(progress), ClassOf(rank), ItemOf(progress)), " for ",
                        Seconds(now_ns - since));
  }
  switch (progress.activity.get()) {
    case RankActivity::kComputing: {
      const int64_t usual = progress.usual_ns.get();
      return absl::StrCat("has been computing ", PlaceOf(rank), " for ", time,
                          usual > 0 ? absl::StrCat(", usually ", Seconds(usual)) : "");
    }
    case RankActivity::kReady:
      return absl::StrCat("is ready to compute ", PlaceOf(rank), " since ", time);
    case RankActivity::kWaiting:
    case RankActivity::kFinished: {
      if (progress.at_end.get()) return "has ended its step";
      const CommItem item = ItemOf(progress);
      const std::string name = NameOfItem(TablesOf(progress), ClassOf(rank), item);
      const char* const with = item.transfer >= 0 ? " with " : " among ";
      std::vector<int64_t> members = MembersOf(rank, item);
      return absl::StrCat("has waited for ", name, with, RankList(members), " for ", time);
    }
    case RankActivity::kOutside:
      break;
  }
  return absl::StrCat("has been between steps for ", time);
}

std::string Waits::StateOf(int64_t rank, int64_t now_ns) const {
  std::string text = Doing(rank, now_ns);
  const int64_t blocker = BlockerOf(rank);
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

Culprit Waits::FindSilent(int64_t now_ns, int64_t limit_ns) const {
  Culprit culprit;
  for (int process = 0; process < board_.num_processes(); ++process) {
    const ProcessEntry& entry = board_.process(process);
    const ProcessStage stage = entry.stage.get();
    if (stage == ProcessStage::kAbsent || stage == ProcessStage::kEnded) continue;
    const int64_t silent = now_ns - entry.heartbeat_ns.get();
    if (silent <= limit_ns) continue;
    culprit.process = process;
    culprit.rank = board_.RanksOf(process).begin;
    culprit.doing = absl::StrCat("has not answered for ", Seconds(silent),
                                 " (stopped, or cut off); it was last seen when it ",
                                 Doing(culprit.rank, entry.heartbeat_ns.get()));
    break;
  }
  return culprit;
}

// The rank that has computed for the longest beyond its limit; without one, the end of a chain of
// waits that does not move.
Culprit Waits::FindInStep(int64_t now_ns, int64_t floor_ns) const {
  Culprit culprit;
  int64_t longest = 0;
  for (int64_t rank = 0; rank < board_.num_ranks(); ++rank) {
    const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
    const int64_t limit = std::max(floor_ns, kTimesUsual * progress.usual_ns.get());
    const int64_t item_since = progress.item_since_ns.get();
    const int64_t stood = now_ns - (item_since > 0 ? item_since : progress.since_ns.get());
    const RankActivity activity = progress.activity.get();
    if (stood <= std::max(limit, longest)) continue;
    if (activity == RankActivity::kComputing || item_since > 0) {
      longest = stood;
      culprit.rank = rank;
    } else if (activity == RankActivity::kWaiting && longest == 0) {
      const int64_t end = EndOfChain(rank);
      if (IsStuck(end, now_ns, limit + kWaitSlackNs)) culprit.rank = end;
    }
  }
  if (culprit.rank >= 0) culprit.doing = Doing(culprit.rank, now_ns);
  return culprit;
}

// Of the end of a chain of waits: its process neither computes, for whichever rank, nor gets or
// sends anything. One that computes has a limit of its own.
bool Waits::IsStuck(int64_t rank, int64_t now_ns, int64_t limit_ns) const {
  const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
  const RankRange neighbours = board_.RanksOf(board_.ProcessOf(rank));
  for (int64_t other = neighbours.begin; other < neighbours.end; ++other) {
    const RankProgress& at = board_.ranks()[static_cast<size_t>(other)];
    if (at.activity.get() == RankActivity::kComputing || at.item_since_ns.get() != 0) return false;
  }
  const int64_t moved = board_.ranks()[static_cast<size_t>(neighbours.begin)].moved_ns.get();
  return now_ns - std::max(progress.since_ns.get(), moved) > limit_ns;
}

// Since when a process has been at its stage, or its ranks outside of steps; now while they are
// not.
int64_t Waits::SinceOutside(int process, int64_t now_ns) const {
  int64_t since = board_.process(process).since_ns.get();
  const RankRange range = board_.RanksOf(process);
  for (int64_t rank = range.begin; rank < range.end; ++rank) {
    const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
    if (progress.activity.get() != RankActivity::kOutside) return now_ns;
    since = std::max(since, progress.since_ns.get());
  }
  return since;
}

// A process that others wait for between steps.
Culprit Waits::FindBetweenSteps(int64_t now_ns, int64_t limit_ns) const {
  Culprit culprit;
  bool waited_for = false;
  for (int process = 0; process < board_.num_processes(); ++process) {
    const ProcessEntry& entry = board_.process(process);
    const int64_t time = now_ns - SinceOutside(process, now_ns);
    if (time <= limit_ns) continue;
    const ProcessStage stage = entry.stage.get();
    waited_for = waited_for || stage == ProcessStage::kAgreeing;
    if (stage != ProcessStage::kStarting && stage != ProcessStage::kRunning) continue;
    culprit.process = process;
    culprit.rank = board_.RanksOf(process).begin;
    culprit.doing = absl::StrCat(
        stage == ProcessStage::kStarting ? "has been starting for " : "has been between steps for ",
        Seconds(time));
  }
  return waited_for ? culprit : Culprit();
}

Culprit Waits::FindCulprit(int64_t now_ns, int64_t floor_ns) const {
  Culprit culprit = FindSilent(now_ns, floor_ns);
  if (culprit.rank < 0) culprit = FindInStep(now_ns, floor_ns);
  if (culprit.rank < 0) culprit = FindBetweenSteps(now_ns, floor_ns);
  if (culprit.rank < 0) return culprit;
  for (int64_t rank = 0; rank < board_.num_ranks(); ++rank) {
    const bool own =
        culprit.process >= 0 ? board_.ProcessOf(rank) == culprit.process : rank == culprit.rank;
    const auto activity = board_.ranks()[static_cast<size_t>(rank)].activity.get();
    if (!own && activity != RankActivity::kComputing) culprit.waits.push_back(rank);
  }
  return culprit;
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
