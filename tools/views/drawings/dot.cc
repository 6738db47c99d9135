#include "tools/views/drawings/dot.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "tools/views/drawings/dot_overview.h"
#include "tools/views/drawings/dot_writer.h"
#include "tools/views/drawings/looks.h"
#include "tools/views/drawings/segment_nodes.h"
#include "tools/views/instructions.h"

namespace mgc {
namespace {

// How a phase looks, beside its heading.
struct PhaseLook {
  Phase phase;
  const char* name;
  const char* outline;
  const char* fill;
};
constexpr PhaseLook kPrepareLook = {Phase::kPrepare, "prepare", "dotted", kPrepareColor};
constexpr PhaseLook kForwardLook = {Phase::kForward, "forward", "solid", kForwardColor};
constexpr PhaseLook kBackwardLook = {Phase::kBackward, "backward", "dashed", kBackwardColor};
constexpr PhaseLook kUpdateLook = {Phase::kUpdate, "update", "dotted", kUpdateColor};

const char* ShapeOf(CollectiveKind kind) {
  if (kind == CollectiveKind::kAllGather) return "invtrapezium";
  if (kind == CollectiveKind::kReduceScatter) return "trapezium";
  if (kind == CollectiveKind::kAllToAll) return "parallelogram";
  return "cds";  // all-reduce
}

// One stage, or several that are alike.
struct StageGroup {
  std::vector<int> stages;
  const PlanClass* plan_class = nullptr;  // of the first
  const Chunk* chunk = nullptr;
  bool first_chunk = false;  // of its class: it shows the update
};

// What makes two stages alike: the segments they call, with counts.
std::string SignatureOf(const Plan& plan, const StageGroup& group) {
  std::string text;
  for (const auto* calls : ListsOf(*group.chunk)) {
    absl::StrAppend(&text, CallsText(plan, *calls), "/");
  }
  if (group.first_chunk) text += CallsText(plan, group.plan_class->update);
  return text;
}

std::vector<StageGroup> GroupStages(const Plan& plan, bool each) {
  std::vector<StageGroup> stages;
  for (const PlanClass& plan_class : plan.classes) {
    for (const Chunk& chunk : plan_class.chunks) {
      stages.push_back({{chunk.stage}, &plan_class, &chunk, &chunk == &plan_class.chunks.front()});
    }
  }
  std::sort(stages.begin(), stages.end(),
            [](const StageGroup& a, const StageGroup& b) { return a.stages[0] < b.stages[0]; });
  if (each) return stages;
  std::vector<StageGroup> groups;
  std::map<std::string, size_t> by_signature;
  for (StageGroup& stage : stages) {
    const auto [found, fresh] = by_signature.insert({SignatureOf(plan, stage), groups.size()});
    if (fresh) {
      groups.push_back(std::move(stage));
    } else {
      groups[found->second].stages.push_back(stage.stages[0]);
    }
  }
  return groups;
}

std::string StagesText(const std::vector<int>& stages) {
  if (stages.size() == 1) return absl::StrCat("stage ", stages[0]);
  const bool neighbours = stages.back() - stages.front() + 1 == static_cast<int>(stages.size());
  return absl::StrCat(
      "stages ",
      neighbours ? absl::StrCat(stages.front(), "-", stages.back()) : absl::StrJoin(stages, ","),
      " x", stages.size());
}

// How deep the segments of forward and backward, and those of the update, are drawn.
struct Depth {
  Detail model;
  Detail update;
};

class Drawing {
 public:
  Drawing(const Plan& plan, const DotOptions& options, Depth depth)
      : plan_(plan), options_(options), depth_(depth), dot_(GraphAttrs()) {}

  DotDrawing Draw() && {
    const std::vector<StageGroup> groups =
        GroupStages(plan_, options_.expand == DotExpand::kStages || All());
    for (const StageGroup& group : groups) DrawGroup(group);
    DrawTransfers(groups);
    DotDrawing drawing;
    drawing.nodes = dot_.nodes();
    drawing.edges = dot_.edges();
    drawing.collapsed = std::move(collapsed_);
    drawing.dot = std::move(dot_).Finish();
    return drawing;
  }

 private:
  bool All() const { return options_.expand == DotExpand::kAll; }

  // First and last node of something drawn, and the clusters they lie in, if any.
  struct Ends {
    std::string first;
    std::string last;
    std::string first_cluster;
    std::string last_cluster;
  };

  DotAttrs GraphAttrs() const {
    return {{"label", absl::StrCat("plan ", plan_.name, " on ", plan_.mesh.ToString(),
                                   "\nsolid blue: forward, dashed orange: backward, "
                                   "dotted green: update, yellow: collectives")},
            {"labelloc", "t"},
            {"newrank", "true"},
            {"compound", "true"},
            {"fontname", "Helvetica"}};
  }

  void Note(std::string text) {
    if (std::count(collapsed_.begin(), collapsed_.end(), text) == 0) {
      collapsed_.push_back(std::move(text));
    }
  }

  void DrawGroup(const StageGroup& group) {
    const std::string stage = absl::StrCat("s", group.stages[0]);
    if (group.stages.size() > 1) {
      Note(absl::StrCat(StagesText(group.stages), " are alike and drawn once"));
    }
    dot_.BeginCluster(stage, {{"label", absl::StrCat(StagesText(group.stages), " (pp ",
                                                     group.plan_class->coordinate, ")")},
                              {"style", "rounded"},
                              {"id", "cluster_" + stage}});
    const Ends prepare = DrawCalls(stage + "_P", group.chunk->prepare, kPrepareLook);
    const Ends forward = DrawCalls(stage + "_F", group.chunk->forward, kForwardLook);
    const Ends backward = DrawCalls(stage + "_B", group.chunk->backward, kBackwardLook);
    const Ends reduce = DrawCalls(stage + "_R", ReductionsOf(*group.chunk), kUpdateLook);
    Ends update;
    if (group.first_chunk) {
      update = DrawCalls(stage + "_U", group.plan_class->update, kUpdateLook);
    }
    dot_.EndCluster();
    Link(prepare, forward, {{"style", "dotted"}});
    Link(forward, backward,
         {{"style", "dotted"},
          {"label", absl::StrCat("kept: ", BytesText(group.chunk->frame_bytes))}});
    Link(backward, reduce.first.empty() ? update : reduce, {{"style", "dotted"}});
    if (!reduce.first.empty()) Link(reduce, update, {{"style", "dotted"}});
    for (int s : group.stages) ends_[s] = {forward, backward};
  }

  void Link(const Ends& from, const Ends& to, DotAttrs attrs) {
    if (from.last.empty() || to.first.empty()) return;
    // An edge within one cluster is not cut at its border.
    const bool within = from.last_cluster == to.first_cluster;
    if (!within && !from.last_cluster.empty()) {
      attrs.push_back({"ltail", "cluster_" + from.last_cluster});
    }
    if (!within && !to.first_cluster.empty()) {
      attrs.push_back({"lhead", "cluster_" + to.first_cluster});
    }
    dot_.Edge(from.last, to.first, attrs);
  }

  Ends DrawCalls(const std::string& prefix, const std::vector<Call>& calls, const PhaseLook& look) {
    Ends all;
    std::vector<CallRun> runs = RunsOf(calls);
    if (options_.expand == DotExpand::kLayers || All()) {
      runs.clear();
      for (const Call& call : calls) runs.push_back({call.segment, call.layer, call.layer, 1});
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      const Ends run = DrawRun(absl::StrCat(prefix, i), runs[i], look);
      if (run.first.empty()) continue;
      Link(all, run, {{"penwidth", "2"}});
      if (all.first.empty()) all = run;
      all.last = run.last;
      all.last_cluster = run.last_cluster;
    }
    return all;
  }

  Ends DrawRun(const std::string& id, const CallRun& run, const PhaseLook& look) {
    const Segment& segment = plan_.segments[static_cast<size_t>(run.segment)];
    std::string title = segment.name;
    if (run.calls > 1) {
      absl::StrAppend(&title, " x", run.calls);
      Note("in a stage, neighbouring layers that run the same segment are drawn once");
    } else if (run.first_layer >= 0 && run.first_layer < plan_.model.num_layers()) {
      absl::StrAppend(&title, " (layer ", run.first_layer, ")");
    }
    const bool again = !drawn_.insert(run.segment).second && !All();
    if (again) Note("a segment is drawn in full where it stands first, elsewhere as one node");
    const Detail detail = again                          ? Detail::kBox
                          : look.phase == Phase::kUpdate ? depth_.update
                                                         : depth_.model;
    const SegmentNodes nodes = NodesOf(plan_, segment, detail);
    if (nodes.nodes.empty()) return {};
    if (detail == Detail::kBox) {
      DrawNode(id, nodes.nodes[0], title, look);
      return {id, id, "", ""};
    }
    dot_.BeginCluster(id, {{"label", absl::StrCat(look.name, ": ", title)},
                           {"style", look.outline},
                           {"id", "cluster_" + id}});
    const auto node_id = [&id](size_t i) { return absl::StrCat(id, "_", i); };
    for (size_t i = 0; i < nodes.nodes.size(); ++i) {
      DrawNode(node_id(i), nodes.nodes[i], nodes.nodes[i].label, look);
    }
    dot_.EndCluster();
    for (const auto& [from, to] : nodes.flow) {
      dot_.Edge(node_id(static_cast<size_t>(from)), node_id(static_cast<size_t>(to)), {});
    }
    return {node_id(0), node_id(nodes.nodes.size() - 1), id, id};
  }

  void DrawNode(const std::string& id, const SegmentNode& node, const std::string& label,
                const PhaseLook& look) {
    const bool collective = node.collective.has_value();
    dot_.Node(id, {{"label", label},
                   {"shape", collective ? ShapeOf(*node.collective) : "box"},
                   {"style", absl::StrCat("filled,", look.outline)},
                   {"fillcolor", collective ? kCollectiveColor : look.fill},
                   {"class", collective ? "collective" : look.name},
                   {"tooltip", absl::StrCat(look.name, ": ", node.tooltip)},
                   {"fontname", "Helvetica"}});
  }

  // One edge for each pair of groups and direction, however many stages they stand for.
  void DrawTransfers(const std::vector<StageGroup>& groups) {
    std::map<int, int64_t> sent;  // bytes by stage
    for (const PlanClass& plan_class : plan_.classes) {
      for (const Transfer& transfer : plan_class.train.transfers) {
        const Chunk& chunk = plan_class.chunks[static_cast<size_t>(transfer.ref.chunk)];
        sent.insert({chunk.stage, transfer.bytes});
      }
    }
    std::set<std::pair<std::string, std::string>> done;
    for (const StageGroup& group : groups) {
      for (int stage : group.stages) {
        const auto next = ends_.find(stage + 1);
        if (next == ends_.end()) continue;
        const auto& [forward, backward] = ends_[stage];
        const auto& [next_forward, next_backward] = next->second;
        const std::string bytes = BytesText(sent[stage]);
        if (done.insert({forward.last, next_forward.first}).second) {
          Link(forward, next_forward, TransferAttrs("send F, " + bytes, true));
        }
        if (done.insert({next_backward.last, backward.first}).second) {
          Link(next_backward, backward, TransferAttrs("send B, " + bytes, false));
        }
      }
    }
  }

  static DotAttrs TransferAttrs(std::string label, bool forward) {
    const TransferLook look = LookOfTransfer(forward);
    return {{"label", std::move(label)}, {"style", look.style}, {"color", look.color},
            {"fontcolor", look.color},   {"penwidth", "2"},     {"constraint", "false"}};
  }

  const Plan& plan_;
  const DotOptions& options_;
  Depth depth_;
  DotWriter dot_;
  std::vector<std::string> collapsed_;
  std::set<int> drawn_;  // segments
  std::map<int, std::pair<Ends, Ends>> ends_;
};

}  // namespace

DotDrawing DrawPlan(const Plan& plan, const DotOptions& options) {
  constexpr Depth kEverything = {Detail::kFull, Detail::kFull};
  constexpr std::array<std::pair<Depth, const char*>, 4> kDepths = {{
      {{Detail::kFull, Detail::kCollectives}, "of the update only collectives are drawn"},
      {{Detail::kFull, Detail::kBox}, "segments of the update are drawn as one node"},
      {{Detail::kCollectives, Detail::kBox},
       "only collectives are drawn; segments of the update are one node"},
      {{Detail::kBox, Detail::kBox}, "segments are drawn as one node"},
  }};
  const bool large = plan.stages.size() > kMostStagesInDetail;
  if (options.expand == DotExpand::kNone || (!options.expand.has_value() && large)) {
    return DrawOverview(plan);
  }
  if (options.expand == DotExpand::kAll) return Drawing(plan, options, kEverything).Draw();
  DotDrawing drawing;
  for (const auto& [depth, note] : kDepths) {
    drawing = Drawing(plan, options, depth).Draw();
    drawing.collapsed.push_back(note);
    if (drawing.nodes <= options.max_nodes) break;
  }
  return drawing;
}

std::string DotJson(const DotDrawing& drawing) {
  JsonWriter json;
  json.BeginObject().Integer("nodes", drawing.nodes).Integer("edges", drawing.edges);
  json.Key("collapsed").BeginArray();
  for (const std::string& line : drawing.collapsed) json.String(line);
  json.EndArray().String("dot", drawing.dot).EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
