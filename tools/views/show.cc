#include "tools/views/show.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "graph/ir/optimizers.h"
#include "graph/text/printer.h"
#include "graph/verify/verify.h"
#include "tools/views/axes.h"
#include "tools/views/counted.h"
#include "tools/views/cuts.h"
#include "tools/views/format.h"
#include "tools/views/instructions.h"
#include "tools/views/memory.h"
#include "tools/views/repeats.h"
#include "tools/views/schedule.h"

namespace mgc {
namespace {

struct StageRow {
  const PlanClass* plan_class;
  const Chunk* chunk;
};

std::vector<StageRow> StagesOf(const Plan& plan) {
  std::vector<StageRow> stages;
  for (const PlanClass& plan_class : plan.classes) {
    for (const Chunk& chunk : plan_class.chunks) stages.push_back({&plan_class, &chunk});
  }
  std::stable_sort(stages.begin(), stages.end(), [](const StageRow& a, const StageRow& b) {
    return a.chunk->stage < b.chunk->stage;
  });
  return stages;
}

// Stages that hold as much of the same.
struct StageFold {
  StageRow first;
  std::vector<int64_t> stages;
  std::vector<int64_t> coordinates;
  std::vector<int64_t> layers;
};

bool HoldAlike(const Chunk& a, const Chunk& b) {
  return a.num_layers == b.num_layers && a.has_embedding == b.has_embedding &&
         a.has_head == b.has_head && a.frame_bytes == b.frame_bytes;
}

std::vector<StageFold> FoldStages(const Plan& plan, bool all) {
  std::vector<StageFold> folds;
  for (const StageRow& row : StagesOf(plan)) {
    const auto same = std::find_if(folds.begin(), folds.end(), [&row](const StageFold& fold) {
      return HoldAlike(*fold.first.chunk, *row.chunk);
    });
    StageFold& fold =
        !all && same != folds.end() ? *same : folds.emplace_back(StageFold{row, {}, {}, {}});
    fold.stages.push_back(row.chunk->stage);
    fold.coordinates.push_back(row.plan_class->coordinate);
    for (int i = 0; i < row.chunk->num_layers; ++i) {
      fold.layers.push_back(row.chunk->first_layer + i);
    }
  }
  for (StageFold& fold : folds) {
    std::vector<int64_t>& pps = fold.coordinates;
    std::sort(pps.begin(), pps.end());
    pps.erase(std::unique(pps.begin(), pps.end()), pps.end());
  }
  return folds;
}

std::string HeldText(const StageFold& fold) {
  std::vector<std::string> parts;
  if (fold.first.chunk->has_embedding) parts.push_back("embedding");
  if (!fold.layers.empty()) {
    parts.push_back(
        absl::StrCat(fold.layers.size() == 1 ? "layer " : "layers ", RangesText(fold.layers)));
  }
  if (fold.first.chunk->has_head) parts.push_back("head");
  return absl::StrJoin(parts, ", ");
}

std::string StagesText(const Plan& plan, bool all) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "pp", "holds", "layers", "kept per micro-batch"}};
  for (const StageFold& fold : FoldStages(plan, all)) {
    const bool several = fold.stages.size() > 1;
    rows.push_back({RangesText(fold.stages), RangesText(fold.coordinates), HeldText(fold),
                    absl::StrCat(fold.first.chunk->num_layers, several ? " each" : ""),
                    BytesText(fold.first.chunk->frame_bytes)});
  }
  return TableText(rows, {true, true, false, true, true});
}

// How often a block stands in the model: owners only.
int64_t OwnersOf(const Plan& plan, size_t block) {
  int64_t owners = 0;
  for (const PlanClass& plan_class : plan.classes) {
    owners += std::count_if(plan_class.blocks.begin(), plan_class.blocks.end(),
                            [block](const HeldBlock& held) {
                              return held.owner && static_cast<size_t>(held.block) == block;
                            });
  }
  return owners;
}

// What is not the first optimizer at the step's own rates: `muon, lr 0.5: `.
std::string OptimizerText(const Attrs& of_param) {
  std::vector<std::string> parts;
  if (const Optimizer& optimizer = OptimizerOf(of_param); &optimizer != &Optimizers()[0]) {
    parts.emplace_back(optimizer.name);
  }
  for (const auto& [attr, word] :
       {std::make_pair(kRateScaleAttr, "lr"), std::make_pair(kDecayScaleAttr, "decay")}) {
    const double factor = of_param.Real(attr, 1);
    if (factor != 1) parts.push_back(absl::StrCat(word, " ", factor));
  }
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, ", "), ": ");
}

std::string StateText(const ParamEntry& entry, const Mesh& mesh) {
  const AxisList& storage = entry.state_sharding.storage;
  return absl::StrCat(OptimizerText(entry.init),
                      storage.empty() ? "as the parameter"
                                      : absl::StrCat("cut over ", mesh.GroupName(storage.AsSet())));
}

std::string ParametersText(const Plan& plan) {
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "times", "type", "cut", "sharding", "optimizer state"}};
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    for (const ParamEntry& entry : plan.blocks[i].entries) {
      rows.push_back({entry.name, absl::StrCat(OwnersOf(plan, i)), TypeText(entry.type),
                      CutOf(entry, plan.mesh), ToString(entry.sharding, plan.mesh),
                      StateText(entry, plan.mesh)});
    }
  }
  return TableText(rows, {false, true, false, false, false, false});
}

const char* ProofText(const Plan& plan) {
  if (plan.verifier == kVerifierVersion) return " (proved)";
  return plan.verifier > 0 ? " (proved by another version of the verifier)" : " (not proved)";
}

// Flags side by side, everything else on a line of its own.
std::string OptionsText(const Plan& plan) {
  constexpr size_t kWidth = 100;
  std::string text;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) absl::StrAppend(&text, " ", line, "\n");
    line.clear();
  };
  for (const auto& [name, value] : plan.options) {
    const std::string option = absl::StrCat(" ", name, value.empty() ? "" : " ", value);
    const bool flag = absl::StartsWith(name, "--");
    if (!flag || line.size() + option.size() > kWidth) end_line();
    line += option;
    if (!flag) end_line();
  }
  end_line();
  return text;
}

std::string HeaderText(const Plan& plan) {
  std::string text = absl::StrCat("plan ", plan.name, ProofText(plan), "\n");
  absl::StrAppend(&text, OptionsText(plan));
  absl::StrAppend(&text, plan.mesh.ToString(), ": ", plan.mesh.world_size(), " ranks of ",
                  plan.machine.name, "\n");
  absl::StrAppend(&text, "batch: ", plan.global_batch_size, " samples of ", plan.seq_length,
                  " tokens, ", plan.num_micro_batches, " micro-batches of ", plan.micro_batch_size,
                  " per data-parallel rank\n");
  absl::StrAppend(&text, "losses: means over ", CountedText(plan.model), "\n");
  absl::StrAppend(&text, "model: ", ParameterCount(plan), " parameters, ", plan.model.num_layers(),
                  " layers, vocabulary ", plan.vocab, "\n");
  absl::StrAppendFormat(&text, "step: %s predicted, pipeline bubble at least %.1f %%\n",
                        DurationText(plan.predicted_step_ns), 100 * IdealBubble(plan));
  for (const std::string& note : plan.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

// Unless `all`, without transfers, and with the ranks that follow a rule on one line.
std::string ActionsText(const Plan& plan, bool all) {
  std::string text;
  ScheduleRows computed;
  for (const PlanClass& plan_class : plan.classes) {
    const std::vector<ScheduleEntry> entries = ScheduleEntriesOf(plan_class);
    absl::StrAppend(&text, "pp ", plan_class.coordinate, ": ", ToString(FindLoops(entries)), "\n");
    computed.push_back(ComputedEntriesOf(plan_class));
  }
  return all ? text : FoldedSchedule(computed);
}

void WriteHeader(const Plan& plan, JsonWriter* json) {
  json->String("name", plan.name).Integer("version", kPlanVersion);
  json->Bool("proved", plan.verifier == kVerifierVersion).Key("options").BeginObject();
  for (const auto& [name, value] : plan.options) json->String(name, value);
  json->EndObject().NewLine().Key("mesh").BeginObject();
  for (const MeshAxis& axis : plan.mesh.axes()) json->Integer(axis.name, axis.size);
  json->EndObject().Integer("world_size", plan.mesh.world_size());
  json->String("machine", plan.machine.name).NewLine();
  json->Integer("global_batch_size", plan.global_batch_size);
  json->Integer("micro_batch_size", plan.micro_batch_size);
  json->Integer("micro_batches", plan.num_micro_batches);
  json->Integer("seq_length", plan.seq_length).Integer("vocab", plan.vocab).NewLine();
  json->String("counted", CountedText(plan.model));
  json->Integer("layers", plan.model.num_layers());
  json->Integer("parameter_count", ParameterCount(plan));
  json->Integer("predicted_step_ns", plan.predicted_step_ns);
  json->Key("ideal_bubble").Number(IdealBubble(plan)).Key("notes").BeginArray();
  for (const std::string& note : plan.notes) json->String(note);
  json->EndArray();
}

void WriteStages(const Plan& plan, JsonWriter* json) {
  json->NewLine().Key("stages").BeginArray();
  for (const StageRow& row : StagesOf(plan)) {
    const Chunk& chunk = *row.chunk;
    json->NewLine().BeginObject().Integer("stage", chunk.stage);
    json->Integer("pp", row.plan_class->coordinate).Integer("first_layer", chunk.first_layer);
    json->Integer("layers", chunk.num_layers).Bool("embedding", chunk.has_embedding);
    json->Bool("head", chunk.has_head).Integer("kept_bytes", chunk.frame_bytes).EndObject();
  }
  json->EndArray();
}

void WriteParameters(const Plan& plan, JsonWriter* json) {
  json->NewLine().Key("parameters").BeginArray();
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    for (const ParamEntry& entry : plan.blocks[i].entries) {
      json->NewLine().BeginObject().String("name", entry.name).Integer("times", OwnersOf(plan, i));
      json->String("type", TypeText(entry.type)).String("cut", CutOf(entry, plan.mesh));
      json->String("sharding", ToString(entry.sharding, plan.mesh));
      json->String("state_sharding", ToString(entry.state_sharding, plan.mesh));
      json->String("optimizer", std::string(OptimizerOf(entry.init).name));
      json->Key("lr_scale").Number(entry.init.Real(kRateScaleAttr, 1));
      json->Key("decay_scale").Number(entry.init.Real(kDecayScaleAttr, 1)).EndObject();
    }
  }
  json->EndArray();
}

void WriteMemory(const Plan& plan, JsonWriter* json) {
  json->NewLine().Key("peak_bytes").BeginArray();
  for (const PlanClass& plan_class : plan.classes) json->Integer(plan_class.memory.peak);
  json->EndArray();
}

}  // namespace

std::string CutOf(const ParamEntry& entry, const Mesh& mesh) {
  std::vector<std::string> cuts;
  for (size_t i = 0; i < entry.sharding.dims.size(); ++i) {
    if (entry.sharding.dims[i].empty()) continue;
    const std::string& name = entry.type.dims[i].name;
    cuts.push_back(absl::StrCat(name.empty() ? absl::StrCat("dim ", i) : name, " over ",
                                mesh.GroupName(entry.sharding.dims[i].AsSet())));
  }
  return cuts.empty() ? "replicated" : absl::StrJoin(cuts, ", ");
}

double IdealBubble(const Plan& plan) {
  if (plan.classes.empty() || plan.num_micro_batches < 1) return 0;
  const double vp = static_cast<double>(std::max<size_t>(plan.classes[0].chunks.size(), 1));
  return (static_cast<double>(plan.classes.size()) - 1) /
         (vp * static_cast<double>(plan.num_micro_batches));
}

int64_t ParameterCount(const Plan& plan) {
  int64_t count = 0;
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    for (const ParamEntry& entry : plan.blocks[i].entries) {
      count += OwnersOf(plan, i) * entry.type.NumElements();
    }
  }
  return count;
}

std::string ShowText(const Plan& plan, bool all) {
  const std::string axes = AxesText(plan.mesh, plan.stages.size(), AxisUsesOf(plan), all);
  const std::string cuts = CutsText(plan, all);
  return absl::StrCat(HeaderText(plan), "\n", StagesText(plan, all), "\n", cuts,
                      cuts.empty() ? "" : "\n", ParametersText(plan), "\n", axes,
                      axes.empty() ? "" : "\n", MemoryTable(plan, all), "\n",
                      ActionsText(plan, all));
}

std::string ShowJson(const Plan& plan) { return ShowJson(plan, {}); }

std::string ShowJson(const Plan& plan, const std::vector<PassTime>& times) {
  JsonWriter json;
  json.BeginObject();
  WriteHeader(plan, &json);
  WriteStages(plan, &json);
  WriteCuts(plan, &json);
  WriteParameters(plan, &json);
  WriteAxes(plan.mesh, AxisUsesOf(plan), &json);
  WriteMemory(plan, &json);
  if (!times.empty()) WriteTiming(times, &json.NewLine().Key("timing"));
  json.NewLine().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
