#include "tools/views/diff.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "graph/plan/proto/plan_difference.h"
#include "graph/text/printer.h"
#include "tools/views/comm.h"
#include "tools/views/format.h"
#include "tools/views/instructions.h"
#include "tools/views/repeats.h"
#include "tools/views/schedule.h"

namespace mgc {
namespace {

// Named facts of a plan, in an order of their own.
using Facts = std::vector<std::pair<std::string, std::string>>;

const std::string* Find(const Facts& facts, const std::string& what) {
  for (const auto& fact : facts) {
    if (fact.first == what) return &fact.second;
  }
  return nullptr;
}

// The facts of the left plan in order, then those that only the right one has.
void Compare(const Facts& left, const Facts& right, std::vector<ViewDifference>* differences) {
  for (const auto& [what, value] : left) {
    const std::string* other = Find(right, what);
    if (other != nullptr && *other == value) continue;
    differences->push_back({what, value, other != nullptr ? *other : ""});
  }
  for (const auto& [what, value] : right) {
    if (Find(left, what) == nullptr) differences->push_back({what, "", value});
  }
}

Facts Header(const Plan& plan) {
  Facts facts = {{"model", plan.name},
                 {"mesh", plan.mesh.ToString()},
                 {"machine", plan.machine.name},
                 {"micro-batch size", absl::StrCat(plan.micro_batch_size)},
                 {"global batch size", absl::StrCat(plan.global_batch_size)},
                 {"micro-batches", absl::StrCat(plan.num_micro_batches)},
                 {"sequence length", absl::StrCat(plan.seq_length)},
                 {"vocabulary", absl::StrCat(plan.vocab)},
                 {"predicted step", DurationText(plan.predicted_step_ns)}};
  for (const auto& [name, value] : plan.options) {
    facts.push_back({absl::StrCat("option ", name), value});
  }
  return facts;
}

Facts Stages(const Plan& plan) {
  Facts facts;
  for (const PlanClass& plan_class : plan.classes) {
    for (const Chunk& chunk : plan_class.chunks) {
      facts.push_back({absl::StrCat("stage ", chunk.stage),
                       absl::StrCat("forward: ", CallsText(plan, chunk.forward),
                                    "; backward: ", CallsText(plan, chunk.backward))});
    }
  }
  return facts;
}

Facts Parameters(const Plan& plan) {
  Facts facts;
  for (const ParamBlock& block : plan.blocks) {
    for (const ParamEntry& entry : block.entries) {
      facts.push_back({absl::StrCat("parameter ", entry.name),
                       absl::StrCat(TypeText(entry.type), " ", ToString(entry.sharding, plan.mesh),
                                    ", state ", ToString(entry.state_sharding, plan.mesh))});
    }
  }
  return facts;
}

Facts Memory(const Plan& plan) {
  Facts facts;
  for (const PlanClass& plan_class : plan.classes) {
    const MemoryUse& use = plan_class.memory;
    const std::pair<const char*, int64_t> purposes[] = {
        {"params", use.params}, {"grads", use.grads},           {"states", use.states},
        {"frames", use.frames}, {"boundaries", use.boundaries}, {"transient", use.transient},
        {"peak", use.peak},     {"workspace", use.workspace}};
    for (const auto& [name, bytes] : purposes) {
      facts.push_back(
          {absl::StrCat("memory of pp ", plan_class.coordinate, ", ", name), BytesText(bytes)});
    }
  }
  return facts;
}

Facts Orders(const Plan& plan) {
  Facts facts;
  for (const PlanClass& plan_class : plan.classes) {
    facts.push_back({absl::StrCat("order of pp ", plan_class.coordinate),
                     ToString(FindLoops(ScheduleEntriesOf(plan_class)))});
  }
  return facts;
}

Facts Communication(const Plan& plan) {
  Facts facts;
  for (const CommEntry& entry : CommEntries(plan)) {
    const std::string what =
        absl::StrCat("communication of stage ", entry.stage, ", ", entry.phase, ", ",
                     entry.layer ? absl::StrCat("layer ", *entry.layer, ", ") : "", entry.op, " ",
                     entry.label, " over ", entry.group);
    const std::string much = absl::StrCat(entry.count, " of ", entry.payload_bytes, " bytes");
    // Several sizes of one kind are one fact.
    const auto same = std::find_if(facts.begin(), facts.end(),
                                   [&what](const auto& fact) { return fact.first == what; });
    if (same != facts.end()) {
      absl::StrAppend(&same->second, ", ", much);
    } else {
      facts.push_back({what, much});
    }
  }
  return facts;
}

const Segment* FindSegment(const Plan& plan, const std::string& name) {
  for (const Segment& segment : plan.segments) {
    if (segment.name == name) return &segment;
  }
  return nullptr;
}

std::string LineAt(const Plan& plan, const Segment& segment, size_t i) {
  return i < segment.instrs.size() ? InstrText(plan, segment, segment.instrs[i]) : "";
}

void CompareSegments(const Plan& left, const Plan& right,
                     std::vector<ViewDifference>* differences) {
  for (const Segment& segment : left.segments) {
    const Segment* other = FindSegment(right, segment.name);
    if (other == nullptr) {
      differences->push_back({absl::StrCat("segment ", segment.name), "", ""});
      differences->back().left = absl::StrCat(segment.instrs.size(), " instructions");
      continue;
    }
    const size_t size = std::max(segment.instrs.size(), other->instrs.size());
    for (size_t i = 0; i < size; ++i) {
      std::string a = LineAt(left, segment, i);
      std::string b = LineAt(right, *other, i);
      if (a == b) continue;
      differences->push_back({absl::StrCat("segment ", segment.name, ", instruction ", i),
                              std::move(a), std::move(b)});
      break;
    }
  }
  for (const Segment& segment : right.segments) {
    if (FindSegment(left, segment.name) != nullptr) continue;
    differences->push_back({absl::StrCat("segment ", segment.name), "",
                            absl::StrCat(segment.instrs.size(), " instructions")});
  }
}

}  // namespace

std::vector<ViewDifference> DiffPlans(const Plan& left, const Plan& right) {
  std::vector<ViewDifference> differences;
  for (const auto facts_of : {Header, Stages, Parameters, Memory, Orders, Communication}) {
    Compare(facts_of(left), facts_of(right), &differences);
  }
  CompareSegments(left, right, &differences);
  if (!differences.empty()) return differences;
  for (FieldDifference& field : FieldDifferences(left, right)) {
    differences.push_back({std::move(field.field), std::move(field.left), std::move(field.right)});
  }
  return differences;
}

std::string DiffText(const std::vector<ViewDifference>& differences) {
  std::string text;
  for (const ViewDifference& difference : differences) {
    absl::StrAppend(&text, difference.what, "\n");
    if (!difference.left.empty()) absl::StrAppend(&text, "< ", difference.left, "\n");
    if (!difference.right.empty()) absl::StrAppend(&text, "> ", difference.right, "\n");
  }
  return text;
}

std::string DiffJson(const std::vector<ViewDifference>& differences) {
  JsonWriter json;
  json.BeginObject().Key("same").Bool(differences.empty()).Key("differences").BeginArray();
  for (const ViewDifference& difference : differences) {
    json.NewLine().BeginObject().String("what", difference.what);
    json.String("left", difference.left).String("right", difference.right).EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
