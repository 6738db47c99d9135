#include "passes/plan/testing/happens_before.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

constexpr int kSteps = 2;

// Events and which of them must be over before which.
class EventGraph {
 public:
  int Add(std::string name) {
    names_.push_back(std::move(name));
    next_.emplace_back();
    return static_cast<int>(names_.size()) - 1;
  }
  void Before(int first, int second) {
    if (first >= 0 && first != second) next_[first].push_back(second);
  }

  // Sorts the events; false, with one that is in or behind a circle, when they have none.
  bool Sort(std::string* stuck) {
    std::vector<int> waits(names_.size(), 0);
    for (const std::vector<int>& next : next_) {
      for (int event : next) ++waits[event];
    }
    std::deque<int> ready;
    for (size_t e = 0; e < waits.size(); ++e) {
      if (waits[e] == 0) ready.push_back(static_cast<int>(e));
    }
    while (!ready.empty()) {
      order_.push_back(ready.front());
      ready.pop_front();
      for (int event : next_[order_.back()]) {
        if (--waits[event] == 0) ready.push_back(event);
      }
    }
    if (order_.size() == names_.size()) return true;
    for (size_t e = 0; e < waits.size() && stuck->empty(); ++e) {
      if (waits[e] > 0) *stuck = names_[e];
    }
    return false;
  }

  // Whether `first` is over before `second` begins. After Sort.
  bool Reaches(int first, int second) {
    if (reach_.empty()) FindReach();
    return (reach_[first][second / 64] >> (second % 64)) & 1;
  }
  const std::string& name(int event) const { return names_[event]; }

 private:
  void FindReach() {
    reach_.assign(names_.size(), std::vector<uint64_t>(names_.size() / 64 + 1, 0));
    for (size_t i = order_.size(); i-- > 0;) {
      std::vector<uint64_t>& mine = reach_[order_[i]];
      for (int event : next_[order_[i]]) {
        mine[event / 64] |= uint64_t{1} << (event % 64);
        for (size_t w = 0; w < mine.size(); ++w) mine[w] |= reach_[event][w];
      }
    }
  }

  std::vector<std::string> names_;
  std::vector<std::vector<int>> next_;
  std::vector<int> order_;
  std::vector<std::vector<uint64_t>> reach_;
};

using ActionKey = std::tuple<ActionKind, int, int64_t>;
ActionKey KeyOf(const ActionRef& ref) {
  if (ref.kind == ActionKind::kUpdate) return {ref.kind, 0, 0};
  return {ref.kind, ref.chunk, ref.micro_batch};
}

bool IsSend(TransferKind kind) {
  return kind == TransferKind::kSendForward || kind == TransferKind::kSendBackward;
}
bool IsForward(TransferKind kind) {
  return kind == TransferKind::kSendForward || kind == TransferKind::kRecvForward;
}

// Each chunk runs every micro-batch once forward and, training, once backward, ascending; then the
// update.
std::string ActionProblem(const Plan& plan, const Program& program,
                          const std::vector<Chunk>& chunks, bool eval) {
  std::map<std::pair<ActionKind, int>, int64_t> next;
  for (const Action& action : program.compute) {
    const ActionRef& ref = action.ref;
    if (ref.kind == ActionKind::kUpdate || ref.kind == ActionKind::kReduceGrad) continue;
    const int64_t expected = next[{ref.kind, ref.chunk}]++;
    if (ref.micro_batch == expected) continue;
    return absl::StrCat("runs ", chunks[ref.chunk].stage, LetterOf(ref.kind), ref.micro_batch,
                        " where micro-batch ", expected, " is due");
  }
  bool complete = next.size() == (eval ? 1 : 2) * chunks.size() && !program.compute.empty() &&
                  program.compute.back().ref.kind == ActionKind::kUpdate;
  for (const auto& [key, count] : next) complete &= count == plan.num_micro_batches;
  return complete ? "" : "lacks actions";
}

// Whether a transfer is where its action is: a send reads where the action writes, a receive writes
// where it reads.
bool IsAtItsAction(const Program& program, const Transfer& transfer, const ActionKey& user) {
  for (const Action& action : program.compute) {
    if (KeyOf(action.ref) != user) continue;
    const bool forward = IsForward(transfer.ref.kind);
    const int64_t address = IsSend(transfer.ref.kind)
                                ? (forward ? action.output : action.grad_output)
                                : (forward ? action.input : action.grad_input);
    if (address == transfer.address) return true;
  }
  return false;
}

// A use of one boundary slot: from the event that writes it to the last that reads it.
struct Life {
  int begin;
  int end;
};

// The uses of all boundary slots, and what must have arrived before what reads it.
class SlotLives {
 public:
  void Add(int coordinate, int64_t address, const Life& life) {
    lives_[{coordinate, address}].push_back(life);
  }
  void Arrives(int arrived, int reader) { arrivals_.emplace_back(arrived, reader); }

  // What an action reads has arrived; of two uses of a slot one is over before the other begins.
  std::vector<std::string> Problems(EventGraph* events) const {
    std::vector<std::string> problems;
    for (const auto& [arrived, reader] : arrivals_) {
      if (events->Reaches(arrived, reader)) continue;
      problems.push_back(absl::StrCat(events->name(reader), " does not wait for what it reads"));
    }
    for (const auto& [slot, lives] : lives_) {
      for (size_t i = 0; i < lives.size(); ++i) {
        for (size_t j = i + 1; j < lives.size(); ++j) {
          const Life& a = lives[i];
          const Life& b = lives[j];
          if (events->Reaches(a.end, b.begin) || events->Reaches(b.end, a.begin)) continue;
          problems.push_back(absl::StrCat("class ", slot.first, " slot ", slot.second, ": ",
                                          events->name(a.end), " and ", events->name(b.begin),
                                          " may meet"));
        }
      }
    }
    return problems;
  }

 private:
  std::map<std::pair<int, int64_t>, std::vector<Life>> lives_;  // class, address
  std::vector<std::pair<int, int>> arrivals_;
};

// forward, receiving stage, micro-batch, step
using WireKey = std::tuple<bool, int, int64_t, int>;

std::string NameOf(const PlanClass& c, const Chunk& chunk, const ActionRef& ref) {
  return absl::StrCat("class ", c.coordinate, " ", chunk.stage, LetterOf(ref.kind),
                      ref.micro_batch);
}

WireKey WireOf(const Chunk& chunk, const TransferRef& ref, int step) {
  const int stage = chunk.stage;
  const bool forward = IsForward(ref.kind);
  const int to = !IsSend(ref.kind) ? stage : stage + (forward ? 1 : -1);
  return {forward, to, ref.micro_batch, step};
}

// Whether a collective's group spans pipeline ranks.
bool SpansStages(const Plan& plan, const Segment& segment, const Instr& instr) {
  if (instr.attrs.Text("group") == "embedding") return true;
  const absl::StatusOr<Collective> collective =
      CollectiveBetween(segment.slots[instr.inputs[0]].sharding,
                        segment.slots[instr.outputs[0]].sharding, instr.op->name);
  MGC_CHECK(collective.ok()) << collective.status().ToString();
  return collective->axes.AsSet().Intersects(plan.mesh.Find("pp").AsSet());
}

class OrderChecker {
 public:
  OrderChecker(const Plan& plan, bool eval) : plan_(plan), eval_(eval) {}

  std::string Run() {
    for (const PlanClass& c : plan_.classes) {
      const std::string problem = ActionProblem(plan_, ProgramOf(c), ChunksOf(c), eval_);
      if (!problem.empty()) Problem(absl::StrCat("class ", c.coordinate, " ", problem));
    }
    for (int step = 0; step < kSteps; ++step) {
      for (const PlanClass& c : plan_.classes) AddTransferEvents(c, step);
      for (const PlanClass& c : plan_.classes) AddStep(c, step);
    }
    for (const auto& [key, ends] : ends_) {
      if (ends != 2) Problem(absl::StrCat("a transfer has ", ends, " ends: ", std::get<2>(key)));
    }
    std::string stuck;
    if (!events_.Sort(&stuck)) {
      Problem(absl::StrCat("a circle: ", stuck, " never happens"));
    } else {
      for (const std::string& problem : slots_.Problems(&events_)) Problem(problem);
    }
    return absl::StrJoin(problems_, "\n");
  }

 private:
  const Program& ProgramOf(const PlanClass& c) const { return eval_ ? c.eval : c.train; }
  const std::vector<Chunk>& ChunksOf(const PlanClass& c) const {
    return eval_ ? c.eval_chunks : c.chunks;
  }
  const std::vector<Call>& UpdateOf(const PlanClass& c) const {
    return eval_ ? c.eval_update : c.update;
  }

  void Problem(std::string text) {
    if (problems_.size() < 10) problems_.push_back(std::move(text));
  }

  void AddTransferEvents(const PlanClass& c, int step) {
    for (const Transfer& transfer : ProgramOf(c).transfers) {
      const WireKey key = WireOf(ChunksOf(c)[transfer.ref.chunk], transfer.ref, step);
      ++ends_[key];
      auto [it, fresh] = wires_.try_emplace(key, -1);
      if (fresh) {
        it->second = events_.Add(
            absl::StrCat("transfer to stage ", std::get<1>(key), " of ", std::get<2>(key)));
        bytes_[it->second] = transfer.bytes;
      } else if (bytes_[it->second] != transfer.bytes) {
        Problem(absl::StrCat(events_.name(it->second), " has two sizes"));
      }
    }
  }

  // A collective of one class, or of several where its group spans pipeline ranks.
  int CollectiveEvent(const PlanClass& c, const Segment& segment, const Instr& instr, int step) {
    const bool embedding = instr.attrs.Text("group") == "embedding";
    if (!SpansStages(plan_, segment, instr)) {
      return events_.Add(absl::StrCat("class ", c.coordinate, " ", segment.name));
    }
    int& ordinal = spanning_count_[{step, c.coordinate, embedding}];
    auto [it, fresh] = spanning_.try_emplace({step, embedding, ordinal++}, -1);
    if (fresh) it->second = events_.Add(absl::StrCat(segment.name, " over pp"));
    return it->second;
  }

  struct ClassStep {
    std::map<ActionKey, int> begins;
    std::map<ActionKey, int> ends;
    std::vector<int> collectives;          // in order of start
    std::map<ActionKey, size_t> first_of;  // number of an action's first collective
    std::vector<int> reductions;
  };

  void AddStep(const PlanClass& c, int step) {
    ClassStep made;
    for (const Action& action : ProgramOf(c).compute) AddAction(c, action, step, &made);
    std::vector<int> queue;
    size_t queued = 0;
    for (const Transfer& transfer : ProgramOf(c).transfers) {
      auto anchor = made.first_of.find(KeyOf(transfer.anchor));
      if (anchor == made.first_of.end()) {
        Problem(absl::StrCat("class ", c.coordinate, ": a transfer's anchor is not listed"));
        continue;
      }
      const size_t position = anchor->second + transfer.issued;
      while (queued < position && queued < made.collectives.size()) {
        queue.push_back(made.collectives[queued++]);
      }
      queue.push_back(AddTransfer(c, transfer, step, made));
    }
    queue.insert(queue.end(), made.collectives.begin() + queued, made.collectives.end());
    int& last = last_communication_.try_emplace(c.coordinate, -1).first->second;
    for (int event : queue) {
      events_.Before(last, event);
      last = event;
    }
  }

  void AddAction(const PlanClass& c, const Action& action, int step, ClassStep* made) {
    const ActionKey key = KeyOf(action.ref);
    const std::string name = NameOf(c, ChunksOf(c)[action.ref.chunk], action.ref);
    int now = events_.Add(name);
    int& last = last_compute_.try_emplace(c.coordinate, -1).first->second;
    events_.Before(last, now);
    made->begins[key] = now;
    made->first_of[key] = made->collectives.size();
    for (const TransferRef& ref : action.waits) events_.Before(Wire(c, ref, step), now);
    if (action.waits_for_reductions) {
      for (int event : made->reductions) events_.Before(event, now);
    }
    for (const Call& call : CallsOf(c, action)) AddCall(c, call, step, &now, made);
    if (action.ref.kind == ActionKind::kReduceGrad) {
      made->reductions.assign(made->collectives.begin(), made->collectives.end());
    }
    const int end = events_.Add(absl::StrCat("end of ", name));
    events_.Before(now, end);
    made->ends[key] = end;
    last = end;
  }

  const std::vector<Call>& CallsOf(const PlanClass& c, const Action& action) const {
    if (action.ref.kind == ActionKind::kUpdate) return UpdateOf(c);
    const Chunk& chunk = ChunksOf(c)[action.ref.chunk];
    if (action.ref.kind == ActionKind::kForward) return chunk.forward;
    return action.ref.kind == ActionKind::kBackward ? chunk.backward : chunk.reduce;
  }

  void AddCall(const PlanClass& c, const Call& call, int step, int* now, ClassStep* made) {
    const Segment& segment = plan_.segments[call.segment];
    const size_t first = made->collectives.size();
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kStart && instr.kind != InstrKind::kWait) continue;
      const int point = events_.Add(absl::StrCat("class ", c.coordinate, " in ", segment.name));
      events_.Before(*now, point);
      *now = point;
      if (instr.kind == InstrKind::kStart) {
        const int event = CollectiveEvent(c, segment, instr, step);
        events_.Before(point, event);
        made->collectives.push_back(event);
      } else {
        events_.Before(made->collectives[first + instr.collective], point);
      }
    }
  }

  int Wire(const PlanClass& c, const TransferRef& ref, int step) {
    auto it = wires_.find(WireOf(ChunksOf(c)[ref.chunk], ref, step));
    if (it != wires_.end()) return it->second;
    Problem(absl::StrCat("class ", c.coordinate, " waits for a transfer that is not listed"));
    return -1;
  }

  int AddTransfer(const PlanClass& c, const Transfer& transfer, int step, const ClassStep& made) {
    const int event = wires_.at(WireOf(ChunksOf(c)[transfer.ref.chunk], transfer.ref, step));
    for (const ActionRef& ref : transfer.after) {
      auto it = made.ends.find(KeyOf(ref));
      if (it != made.ends.end()) events_.Before(it->second, event);
    }
    for (const TransferRef& ref : transfer.after_transfers) {
      events_.Before(Wire(c, ref, step), event);
    }
    const bool forward = IsForward(transfer.ref.kind);
    const ActionKind kind = forward ? ActionKind::kForward : ActionKind::kBackward;
    const ActionKey user{kind, transfer.ref.chunk, transfer.ref.micro_batch};
    if (IsSend(transfer.ref.kind)) events_.Before(made.ends.at(user), event);
    if (!IsAtItsAction(ProgramOf(c), transfer, user)) {
      Problem(absl::StrCat("class ", c.coordinate, ": a transfer of micro-batch ",
                           transfer.ref.micro_batch, " is not where its action is"));
    }
    Life life{event, made.ends.at(user)};
    if (IsSend(transfer.ref.kind)) {
      life = {made.begins.at(user), event};
    } else {
      slots_.Arrives(event, made.begins.at(user));
      // Backward reads again what forward has received.
      auto again = made.ends.find(
          ActionKey{ActionKind::kBackward, transfer.ref.chunk, transfer.ref.micro_batch});
      if (again != made.ends.end()) life.end = again->second;
    }
    slots_.Add(c.coordinate, transfer.address, life);
    return event;
  }

  const Plan& plan_;
  const bool eval_;
  EventGraph events_;
  std::map<WireKey, int> wires_;                              // event
  std::map<WireKey, int> ends_;                               // number of transfers listed
  std::map<int, int64_t> bytes_;                              // by event
  std::map<std::tuple<int, bool, int>, int> spanning_;        // step, embedding, ordinal
  std::map<std::tuple<int, int, bool>, int> spanning_count_;  // step, class, embedding
  std::map<int, int> last_compute_;                           // by class
  std::map<int, int> last_communication_;
  SlotLives slots_;
  std::vector<std::string> problems_;
};

}  // namespace

std::string CheckOrder(const Plan& plan, bool eval) { return OrderChecker(plan, eval).Run(); }

}  // namespace mgc
