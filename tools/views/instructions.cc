#include "tools/views/instructions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "graph/plan/instr_collective.h"
#include "graph/text/printer.h"
#include "tools/views/repeats.h"
#include "tools/views/schedule.h"

namespace mgc {
namespace {

const Slot& SlotAt(const Segment& segment, int index) {
  return segment.slots[static_cast<size_t>(index)];
}

std::string NamesOf(const Segment& segment, const std::vector<int>& slots) {
  return absl::StrJoin(slots, ", ", [&segment](std::string* out, int slot) {
    absl::StrAppend(out, "%", SlotAt(segment, slot).name);
  });
}

std::string ResultsOf(const Plan& plan, const Segment& segment, const Instr& instr) {
  return absl::StrJoin(instr.outputs, ", ", [&](std::string* out, int slot) {
    const Slot& result = SlotAt(segment, slot);
    absl::StrAppend(out, "%", result.name, ": ", TypeText(result.type), " ",
                    ToString(result.sharding, plan.mesh));
  });
}

std::string SegmentText(const Plan& plan, const Segment& segment) {
  std::string text = absl::StrCat(
      "segment ", segment.name, "(",
      absl::StrJoin(segment.formals, ", ",
                    [](std::string* out, const Formal& formal) { *out += ToString(formal); }),
      "): transient ", BytesText(segment.transient_bytes), ", workspace ",
      BytesText(segment.workspace_bytes), "\n");
  for (const Instr& instr : segment.instrs) {
    absl::StrAppend(&text, "  ", InstrText(plan, segment, instr), "\n");
  }
  return text;
}

std::string ClassText(const Plan& plan, const PlanClass& plan_class) {
  std::string text = absl::StrCat("class pp=", plan_class.coordinate, ": ",
                                  RanksOfClass(plan, plan_class.coordinate).size(), " ranks\n");
  for (const Chunk& chunk : plan_class.chunks) {
    const std::string stage = absl::StrCat("  stage ", chunk.stage, " ");
    if (!chunk.prepare.empty()) {
      absl::StrAppend(&text, stage, "prepare: ", CallsText(plan, chunk.prepare), "\n");
    }
    absl::StrAppend(&text, stage, "forward: ", CallsText(plan, chunk.forward), "\n", stage,
                    "backward: ", CallsText(plan, chunk.backward), "\n");
    if (!chunk.last_backward.empty()) {
      absl::StrAppend(&text, stage, "last backward beside: ", CallsText(plan, ReductionsOf(chunk)),
                      "\n");
    }
  }
  absl::StrAppend(&text, "  update: ", CallsText(plan, plan_class.update), "\n");
  return absl::StrCat(text, "  actions: ", ToString(FindLoops(ScheduleEntriesOf(plan_class))),
                      "\n");
}

void WriteCalls(const Plan& plan, absl::string_view key, const std::vector<Call>& calls,
                JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const CallRun& run : RunsOf(calls)) {
    json->BeginObject().String("segment", plan.segments[static_cast<size_t>(run.segment)].name);
    json->Integer("first_layer", run.first_layer).Integer("last_layer", run.last_layer);
    json->Integer("calls", run.calls).EndObject();
  }
  json->EndArray();
}

void WriteSegment(const Plan& plan, const Segment& segment, JsonWriter* json) {
  json->NewLine().BeginObject().String("name", segment.name);
  json->Integer("transient_bytes", segment.transient_bytes);
  json->Integer("workspace_bytes", segment.workspace_bytes).Key("slots").BeginArray();
  for (const Slot& slot : segment.slots) {
    json->BeginObject().String("name", slot.name).String("type", TypeText(slot.type));
    json->String("sharding", ToString(slot.sharding, plan.mesh));
    json->String("formal", ToString(segment.formals[static_cast<size_t>(slot.formal)]));
    json->Integer("offset", slot.offset).Integer("bytes", slot.bytes).EndObject();
  }
  json->EndArray().Key("instructions").BeginArray();
  for (const Instr& instr : segment.instrs) json->String(InstrText(plan, segment, instr));
  json->EndArray().EndObject();
}

void WriteClass(const Plan& plan, const PlanClass& plan_class, JsonWriter* json) {
  json->NewLine().BeginObject().Integer("pp", plan_class.coordinate).Key("chunks").BeginArray();
  for (const Chunk& chunk : plan_class.chunks) {
    json->BeginObject().Integer("stage", chunk.stage);
    WriteCalls(plan, "prepare", chunk.prepare, json);
    WriteCalls(plan, "forward", chunk.forward, json);
    WriteCalls(plan, "backward", chunk.backward, json);
    WriteCalls(plan, "last_backward_beside", ReductionsOf(chunk), json);
    json->EndObject();
  }
  json->EndArray();
  WriteCalls(plan, "update", plan_class.update, json);
  json->String("actions", ToString(FindLoops(ScheduleEntriesOf(plan_class)))).EndObject();
}

}  // namespace

std::vector<CallRun> RunsOf(const std::vector<Call>& calls) {
  std::vector<CallRun> runs;
  for (const Call& call : calls) {
    if (!runs.empty() && runs.back().segment == call.segment) {
      runs.back().last_layer = call.layer;
      ++runs.back().calls;
    } else {
      runs.push_back({call.segment, call.layer, call.layer, 1});
    }
  }
  return runs;
}

std::string CallsText(const Plan& plan, const std::vector<Call>& calls) {
  return absl::StrJoin(RunsOf(calls), " ", [&plan](std::string* out, const CallRun& run) {
    absl::StrAppend(out, plan.segments[static_cast<size_t>(run.segment)].name);
    if (run.calls > 1) absl::StrAppend(out, " x", run.calls);
  });
}

std::string InstrText(const Plan& plan, const Segment& segment, const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::kWait:
      return absl::StrCat("wait ", instr.collective);
    case InstrKind::kLoad:
      return absl::StrCat(ResultsOf(plan, segment, instr), " = load(\"", instr.attrs.Text("name"),
                          "\")");
    case InstrKind::kStart: {
      const InstrCollective collective = CollectiveOf(plan.mesh, plan.stages, segment, instr);
      return absl::StrCat("start ", instr.collective, ": ", NameOf(collective.kind()),
                          collective.label.empty() ? "" : " ", collective.label, " over ",
                          plan.mesh.GroupName(collective.axes()), ", ",
                          BytesText(collective.payload_bytes), ": ", NamesOf(segment, instr.inputs),
                          " -> ", NamesOf(segment, instr.outputs));
    }
    case InstrKind::kCompute:
      break;
  }
  return absl::StrCat(ResultsOf(plan, segment, instr), " = ",
                      instr.op != nullptr ? instr.op->name : "?", "(",
                      NamesOf(segment, instr.inputs), ")", instr.attrs.empty() ? "" : " ",
                      instr.attrs.empty() ? "" : AttrsText(instr.attrs));
}

std::string InstructionsText(const Plan& plan) {
  std::string text = plan.mesh.ToString() + "\n";
  for (const Segment& segment : plan.segments) {
    absl::StrAppend(&text, "\n", SegmentText(plan, segment));
  }
  for (const PlanClass& plan_class : plan.classes) {
    absl::StrAppend(&text, "\n", ClassText(plan, plan_class));
  }
  return text;
}

std::string InstructionsJson(const Plan& plan) {
  JsonWriter json;
  json.BeginObject().Key("segments").BeginArray();
  for (const Segment& segment : plan.segments) WriteSegment(plan, segment, &json);
  json.EndArray().NewLine().Key("classes").BeginArray();
  for (const PlanClass& plan_class : plan.classes) WriteClass(plan, plan_class, &json);
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
