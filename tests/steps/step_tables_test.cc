// The tables that proof, runtime and prediction all read are held against the plan itself, by
// counting and by names: nobody else would notice if they were wrong.

#include "graph/plan/step_tables.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

using Places = std::vector<std::string>;

// Appends, for every start, whether no instruction waits for it.
void AddStarts(const std::vector<Instr>& instrs, std::vector<bool>* starts) {
  for (const Instr& start : instrs) {
    if (start.kind != InstrKind::kStart) continue;
    starts->push_back(std::none_of(instrs.begin(), instrs.end(), [&](const Instr& instr) {
      return instr.kind == InstrKind::kWait && instr.collective == start.collective;
    }));
  }
}

// Says where tables and plan disagree, in a form of its own: names and plain counting.
class TablesCheck {
 public:
  TablesCheck(const Plan& plan, const StepTables& tables) : plan_(plan), tables_(tables) {}

  Places Run() {
    for (size_t c = 0; c < plan_.classes.size(); ++c) {
      const Program& program = tables_.eval ? plan_.classes[c].eval : plan_.classes[c].train;
      CheckClass(c, program);
    }
    for (size_t s = 0; s < plan_.segments.size(); ++s) CheckSegment(s);
    return wrong_;
  }

 private:
  void Expect(bool holds, const std::string& what) {
    if (!holds) wrong_.push_back(what);
  }

  const std::vector<Chunk>& ChunksOf(size_t c) const {
    return tables_.eval ? plan_.classes[c].eval_chunks : plan_.classes[c].chunks;
  }
  template <typename List>
  Places NamesOf(size_t c, const List& list) const {
    Places names;
    for (const auto& entry : list) names.push_back(NameOf(entry.ref, ChunksOf(c)));
    return names;
  }
  static int64_t PlaceIn(const Places& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  }

  // The calls of `3F2`, by its letter.
  const std::vector<Call>& CallsOf(size_t c, const Action& action) const {
    const PlanClass& plan_class = plan_.classes[c];
    if (LetterOf(action.ref.kind) == "U") {
      return tables_.eval ? plan_class.eval_update : plan_class.update;
    }
    const Chunk& chunk = ChunksOf(c)[static_cast<size_t>(action.ref.chunk)];
    if (LetterOf(action.ref.kind) == "P") return chunk.prepare;
    if (LetterOf(action.ref.kind) == "F") return chunk.forward;
    const bool reduces = action.ref.micro_batch + 1 == plan_.num_micro_batches;
    return reduces && !chunk.last_backward.empty() ? chunk.last_backward : chunk.backward;
  }
  // What the calls of an action wait for: in `step` go all starts of the class before them, true
  // where no instruction of their segment waits.
  std::vector<int64_t> NeededBy(size_t c, const Action& action, std::vector<bool>* step) const {
    std::vector<int64_t> needed;
    bool waits = false;
    for (const Call& call : CallsOf(c, action)) {
      int64_t all = static_cast<int64_t>(step->size());
      for (int64_t left = call.running; all > 0; --all) {
        if ((*step)[static_cast<size_t>(all) - 1] && left-- == 0) break;
      }
      waits |= call.running >= 0;
      needed.push_back(call.running < 0 ? 0 : all);
      AddStarts(plan_.segments[static_cast<size_t>(call.segment)].instrs, step);
    }
    return waits ? needed : std::vector<int64_t>();
  }
  int64_t CollectivesOf(size_t c, const Action& action) const {
    std::vector<bool> starts;
    for (const Call& call : CallsOf(c, action)) {
      AddStarts(plan_.segments[static_cast<size_t>(call.segment)].instrs, &starts);
    }
    return static_cast<int64_t>(starts.size());
  }

  void CheckClass(size_t c, const Program& program) {
    const StepClass& found = tables_.classes[c];
    const Places actions = NamesOf(c, program.compute);
    const Places transfers = NamesOf(c, program.transfers);
    std::vector<int64_t> first(1, 0);
    std::vector<bool> starts;
    for (size_t a = 0; a < actions.size(); ++a) {
      const StepAction& step = found.actions[a];
      const Action& action = program.compute[a];
      int64_t needed = 0;
      for (const TransferRef& ref : action.waits) {
        needed = std::max(needed, PlaceIn(transfers, NameOf(ref, ChunksOf(c))) + 1);
      }
      Expect(step.action == &action, actions[a]);
      Expect(step.calls == &CallsOf(c, action), actions[a] + " calls");
      Expect(step.first_collective == first.back(), actions[a] + " first");
      Expect(step.transfers_needed == needed, actions[a] + " transfers");
      Expect(step.collectives_needed == NeededBy(c, action, &starts), actions[a] + " collectives");
      first.push_back(first.back() + CollectivesOf(c, action));
    }
    Expect(found.num_collectives == first.back(), "collectives");
    for (size_t t = 0; t < transfers.size(); ++t) {
      CheckTransfer(c, program.transfers[t], transfers[t], actions, first, found.transfers[t]);
    }
  }

  // `2SEND_F3` goes to `3RECV_F3`, `3SEND_B3` to `2RECV_B3`.
  void CheckTransfer(size_t c, const Transfer& transfer, const std::string& name,
                     const Places& actions, const std::vector<int64_t>& first,
                     const StepTransfer& step) {
    const std::string word(WordOf(transfer.ref.kind));
    const bool sends = word.substr(0, 4) == "SEND";
    int64_t needed = 0;
    for (const ActionRef& ref : transfer.after) {
      needed = std::max(needed, PlaceIn(actions, NameOf(ref, ChunksOf(c))) + 1);
    }
    const int stage = ChunksOf(c)[static_cast<size_t>(transfer.ref.chunk)].stage;
    const std::string rest = absl::StrCat(word.substr(5), transfer.ref.micro_batch);
    if (sends) needed = std::max(needed, PlaceIn(actions, absl::StrCat(stage, rest)) + 1);
    Expect(step.transfer == &transfer, name);
    Expect(step.actions_needed == needed, name + " actions");
    const int64_t anchor = PlaceIn(actions, NameOf(transfer.anchor, ChunksOf(c)));
    Expect(step.position == first[static_cast<size_t>(anchor)] + transfer.issued,
           name + " position");
    const int other = stage + (sends == (word.substr(5) == "F") ? 1 : -1);
    const size_t peer = static_cast<size_t>(transfer.peer);
    const Program& theirs = tables_.eval ? plan_.classes[peer].eval : plan_.classes[peer].train;
    const std::string twin = absl::StrCat(other, sends ? "RECV_" : "SEND_", rest);
    Expect(step.peer_class == transfer.peer, name + " class");
    Expect(step.peer_index == PlaceIn(NamesOf(peer, theirs.transfers), twin), name + " peer");
  }

  // Which pipeline coordinates a collective joins, from the ranks of its axes.
  std::set<int64_t> CoordinatesOf(const StepStart& start) const {
    const AxisId pipeline = PipelineAxis(plan_.mesh);
    std::set<int64_t> coordinates;
    for (int64_t rank : plan_.mesh.Group(0, start.collective.axes())) {
      coordinates.insert(pipeline < 0 ? 0 : plan_.mesh.Coordinate(rank, pipeline));
    }
    const std::vector<int>& classes = start.collective.classes;
    if (!classes.empty()) coordinates = {classes.begin(), classes.end()};
    return coordinates;
  }

  void CheckSegment(size_t s) {
    const Segment& segment = plan_.segments[s];
    std::vector<const Instr*> starts;
    for (const Instr& instr : segment.instrs) {
      if (instr.kind == InstrKind::kStart) starts.push_back(&instr);
    }
    const StepSegment& found = tables_.segments[s];
    Expect(found.segment == &segment && found.starts.size() == starts.size(), segment.name);
    for (size_t i = 0; i < std::min(starts.size(), found.starts.size()); ++i) {
      const std::string name = absl::StrCat(segment.name, " start ", i);
      const StepStart& start = found.starts[i];
      Expect(start.instr == starts[i], name);
      const Slot& from = segment.slots[static_cast<size_t>(starts[i]->inputs[0])];
      const Slot& to = segment.slots[static_cast<size_t>(starts[i]->outputs[0])];
      // Of the corpus, only copies at the two ends are summed.
      const int last = static_cast<int>(plan_.classes.size()) - 1;
      const bool ends = from.sharding == to.sharding;
      Expect(start.collective.classes == (ends ? std::vector<int>{0, last} : std::vector<int>()),
             name + " classes");
      const std::set<int64_t> classes = CoordinatesOf(start);
      const bool joins = classes.size() > 1;
      Expect(joins == (start.group != kOwnGroup), name + " group");
      if (joins && start.group != kOwnGroup) {
        const std::vector<int>& members = tables_.groups[static_cast<size_t>(start.group)];
        Expect(std::set<int64_t>(members.begin(), members.end()) == classes, name + " members");
      }
      CheckSignature(start, name);
    }
  }

  // The first collective of all that has the same signature is alike in op, group and sizes.
  void CheckSignature(const StepStart& start, const std::string& name) {
    for (const StepSegment& segment : tables_.segments) {
      for (const StepStart& other : segment.starts) {
        const bool alike = Form(*FindSegment(start), start) == Form(*segment.segment, other);
        if (alike != (start.signature == other.signature)) {
          wrong_.push_back(name + " signature");
          return;
        }
      }
    }
  }
  const Segment* FindSegment(const StepStart& start) const {
    for (const StepSegment& segment : tables_.segments) {
      for (const StepStart& other : segment.starts) {
        if (&other == &start) return segment.segment;
      }
    }
    return nullptr;
  }
  std::string Form(const Segment& segment, const StepStart& start) const {
    std::string form = absl::StrCat(start.instr->op->name, start.collective.axes().bits(),
                                    absl::StrJoin(start.collective.classes, ","));
    for (const std::vector<int>* list : {&start.instr->inputs, &start.instr->outputs}) {
      for (int number : *list) {
        const Slot& slot = segment.slots[static_cast<size_t>(number)];
        absl::StrAppend(&form, " ", NameOf(slot.type.dtype), !slot.sharding.max.empty());
        for (int64_t size : LocalShape(slot.type, slot.sharding, plan_.mesh)) {
          absl::StrAppend(&form, ",", size);
        }
      }
    }
    return form;
  }

  const Plan& plan_;
  const StepTables& tables_;
  Places wrong_;
};

class Tables : public testing::TestWithParam<PlanCase> {};

TEST_P(Tables, SayWhatThePlanSays) {
  const Plan plan = CompilePlanCase(GetParam());
  for (const bool eval : {false, true}) {
    EXPECT_EQ(TablesCheck(plan, StepTables(plan, eval)).Run(), Places());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tables, testing::ValuesIn(TinyPlanCases()),
                         [](const testing::TestParamInfo<PlanCase>& info) {
                           return info.param.name;
                         });

struct Damage {
  const char* name;
  std::function<void(StepTables*)> make;
};

class DamagedTables : public testing::TestWithParam<Damage> {};

// tp 2, pp 2, dp 2: collectives inside classes and between them, transfers, reductions.
TEST_P(DamagedTables, AreSeen) {
  PlanCase plan_case{"damaged", "gpt2-tiny", 2, 2, 1, 2, 4};
  const Plan plan = CompilePlanCase(plan_case);
  StepTables tables(plan, false);
  ASSERT_EQ(TablesCheck(plan, tables).Run(), Places());
  GetParam().make(&tables);
  EXPECT_EQ(TablesCheck(plan, tables).Run().empty(), false);
}

StepStart& JoiningStart(StepTables* tables) {
  for (StepSegment& segment : tables->segments) {
    for (StepStart& start : segment.starts) {
      if (start.group != kOwnGroup) return start;
    }
  }
  ADD_FAILURE() << "no collective joins classes";
  return tables->segments[0].starts[0];
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedTables,
    testing::Values(
        Damage{"action", [](StepTables* t) { t->classes[0].actions[1].action -= 1; }},
        Damage{"calls",
               [](StepTables* t) {
                 t->classes[0].actions[0].calls = t->classes[0].actions.back().calls;
               }},
        Damage{"first_collective",
               [](StepTables* t) { ++t->classes[1].actions[2].first_collective; }},
        Damage{"transfers_needed",
               [](StepTables* t) { --t->classes[1].actions[0].transfers_needed; }},
        Damage{"collectives_needed",
               [](StepTables* t) { --t->classes[0].actions.back().collectives_needed[0]; }},
        Damage{"num_collectives", [](StepTables* t) { ++t->classes[0].num_collectives; }},
        Damage{"transfer", [](StepTables* t) { t->classes[0].transfers[1].transfer -= 1; }},
        Damage{"peer_class", [](StepTables* t) { t->classes[0].transfers[0].peer_class = 0; }},
        Damage{"peer_index", [](StepTables* t) { ++t->classes[0].transfers[0].peer_index; }},
        Damage{"actions_needed",
               [](StepTables* t) { --t->classes[0].transfers[0].actions_needed; }},
        Damage{"position", [](StepTables* t) { --t->classes[0].transfers[1].position; }},
        Damage{"start",
               [](StepTables* t) { JoiningStart(t).instr = t->segments[0].starts[0].instr; }},
        Damage{"axes",
               [](StepTables* t) { JoiningStart(t).collective.parts[0].axes = AxisList(); }},
        Damage{"classes",
               [](StepTables* t) {
                 std::vector<int>& classes = JoiningStart(t).collective.classes;
                 classes = classes.empty() ? std::vector<int>{0, 1} : std::vector<int>();
               }},
        Damage{"group", [](StepTables* t) { JoiningStart(t).group = kOwnGroup; }},
        Damage{"members", [](StepTables* t) { t->groups[0].pop_back(); }},
        Damage{"signature", [](StepTables* t) { JoiningStart(t).signature = -7; }}),
    [](const testing::TestParamInfo<Damage>& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
