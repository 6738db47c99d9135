// order_v4: the shortest circle of waits in which a walk has stopped, as text and drawing, and what
// has run before as a grid of classes and times.

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/verify/order/order_internal.h"

namespace mgc {
namespace {

constexpr size_t kMostQueues = 4096;  // stopped ones among which a circle is looked for
constexpr size_t kMostRoots = 256;
constexpr int64_t kMostColumns = 16;
constexpr size_t kMostRows = 16;

// A wait of one queue that has stopped for another.
struct Edge {
  size_t from;
  size_t to;
  std::string item;  // what `to` must come to
};

std::string NameOf(const WalkQueue& queue) {
  return absl::StrCat("class ", queue.class_index,
                      queue.communication ? " communication" : " computation");
}

class WaitGraph {
 public:
  WaitGraph(const StepTables& tables, const StepWalker& walker) : walker_(walker) {
    for (int c = 0; c < static_cast<int>(tables.classes.size()); ++c) {
      for (const bool communication : {true, false}) {
        const WalkQueue queue{c, communication};
        if (walker.IsAtEnd(queue) || queues_.size() >= kMostQueues) continue;
        numbers_[{c, communication}] = queues_.size();
        queues_.push_back(queue);
      }
    }
    edges_.resize(queues_.size());
    for (size_t q = 0; q < queues_.size(); ++q) AddEdges(q);
  }

  const WalkQueue& queue(size_t q) const { return queues_[q]; }
  const std::vector<WalkQueue>& queues() const { return queues_; }
  // What a queue waits for that is at its end already.
  const std::vector<std::string>& lost() const { return lost_; }

  // Empty if there is none.
  std::vector<Edge> ShortestCircle() const {
    std::vector<Edge> best;
    for (size_t root = 0; root < std::min(queues_.size(), kMostRoots); ++root) {
      std::vector<Edge> circle = CircleThrough(root, best.empty() ? queues_.size() : best.size());
      if (!circle.empty() && (best.empty() || circle.size() < best.size())) best = circle;
    }
    return best;
  }

 private:
  void AddEdges(size_t from) {
    for (const WalkNeed& need : walker_.Needs(queues_[from])) {
      const auto it = numbers_.find({need.queue.class_index, need.queue.communication});
      if (it != numbers_.end()) {
        edges_[from].push_back({from, it->second, need.item});
      } else if (walker_.IsAtEnd(need.queue)) {
        lost_.push_back(absl::StrCat("  ", NameOf(queues_[from]), " at ",
                                     walker_.Head(queues_[from]), " waits for ", need.item, " of ",
                                     NameOf(need.queue), ", which is at its end"));
      }
    }
  }

  // The shortest circle through `root` with at most `most` waits.
  std::vector<Edge> CircleThrough(size_t root, size_t most) const {
    std::vector<const Edge*> came(queues_.size(), nullptr);
    std::vector<size_t> depth(queues_.size(), 0);
    std::deque<size_t> open = {root};
    while (!open.empty()) {
      const size_t at = open.front();
      open.pop_front();
      if (depth[at] >= most) break;
      for (const Edge& edge : edges_[at]) {
        if (edge.to == root) {
          std::vector<Edge> circle = {edge};
          for (size_t back = at; back != root; back = came[back]->from) {
            circle.push_back(*came[back]);
          }
          std::reverse(circle.begin(), circle.end());
          return circle;
        }
        if (came[edge.to] != nullptr) continue;
        came[edge.to] = &edge;
        depth[edge.to] = depth[at] + 1;
        open.push_back(edge.to);
      }
    }
    return {};
  }

  const StepWalker& walker_;
  std::vector<WalkQueue> queues_;
  absl::flat_hash_map<std::pair<int, bool>, size_t> numbers_;
  std::vector<std::vector<Edge>> edges_;
  std::vector<std::string> lost_;
};

// What has run: actions take one unit of time, communication none.
class Grid : public StepVisitor {
 public:
  explicit Grid(const StepTables& tables) : tables_(tables) {
    const size_t classes = tables.classes.size();
    cells_.resize(classes);
    time_.assign(classes, 0);
    joined_.assign(classes, 0);
    communicated_.assign(classes, 0);
    for (const StepClass& walk : tables.classes) {
      arrived_.emplace_back(walk.transfers.size(), 0);
      ended_.emplace_back(walk.actions.size(), 0);
    }
  }

  bool WantsInstrs() const override { return false; }

  void Collective(absl::Span<const InstrSite> sites) override {
    int64_t time = 0;
    for (const InstrSite& site : sites) time = std::max(time, time_[At(site.class_index)]);
    for (const InstrSite& site : sites) joined_[At(site.class_index)] = time;
  }
  void Wait(const InstrSite& site) override {
    int64_t& time = time_[At(site.class_index)];
    time = std::max(time, joined_[At(site.class_index)]);
  }
  void Transfer(int from, const mgc::Transfer& send, int to,
                const mgc::Transfer& receive) override {
    const ActionRef sender{IsForward(send.ref.kind) ? ActionKind::kForward : ActionKind::kBackward,
                           send.ref.chunk, send.ref.micro_batch};
    const int action = tables_.classes[At(from)].IndexOf(sender);
    const int64_t time =
        std::max({ended_[At(from)][At(action)], communicated_[At(from)], communicated_[At(to)]});
    Arrive(from, send.ref, time);
    Arrive(to, receive.ref, time);
  }
  void EndAction(int c, const Action& action) override {
    const StepClass& walk = tables_.classes[At(c)];
    int64_t& time = time_[At(c)];
    for (const TransferRef& ref : action.waits) {
      time = std::max(time, arrived_[At(c)][static_cast<size_t>(walk.IndexOf(ref))]);
    }
    cells_[At(c)].push_back({time++, NameOf(action.ref, *walk.chunks)});
    ended_[At(c)][At(walk.IndexOf(action.ref))] = time;
  }

  // Behind what the class has run.
  void Mark(int c, const std::string& name) {
    const std::string brief = name.substr(0, std::min(name.find(" of "), name.find(" in ")));
    cells_[At(c)].push_back({time_[At(c)]++, absl::StrCat("*", brief, "*")});
  }

  std::string Text(const std::vector<int>& rows) const {
    int64_t end = 0;
    size_t width = 1;
    for (int c : rows) {
      end = std::max(end, time_[At(c)]);
      for (const Cell& cell : cells_[At(c)]) width = std::max(width, cell.name.size());
    }
    const int64_t begin = std::max<int64_t>(0, end - kMostColumns);
    std::vector<std::string> lines;
    for (int c : rows) {
      std::vector<std::string> columns(static_cast<size_t>(end - begin), ".");
      for (const Cell& cell : cells_[At(c)]) {
        if (cell.time >= begin) columns[static_cast<size_t>(cell.time - begin)] = cell.name;
      }
      std::string line = absl::StrCat("  class ", c, c < 10 ? "  |" : " |");
      for (const std::string& column : columns) {
        absl::StrAppend(&line, " ", column, std::string(width - column.size(), ' '));
      }
      lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    }
    return absl::StrJoin(lines, "\n");
  }

 private:
  struct Cell {
    int64_t time;
    std::string name;
  };

  static size_t At(int c) { return static_cast<size_t>(c); }
  void Arrive(int c, const TransferRef& ref, int64_t time) {
    const int index = tables_.classes[At(c)].IndexOf(ref);
    arrived_[At(c)][At(index)] = time;
    communicated_[At(c)] = time;
  }

  const StepTables& tables_;
  std::vector<std::vector<Cell>> cells_;       // by class
  std::vector<int64_t> time_;                  // by class: when its computation is free
  std::vector<int64_t> joined_;                // by class: of its last collective
  std::vector<int64_t> communicated_;          // by class: when its last transfer was over
  std::vector<std::vector<int64_t>> arrived_;  // by class and transfer
  std::vector<std::vector<int64_t>> ended_;    // by class and action
};

std::string GridText(const StepTables& tables, const StepWalker& walker,
                     const std::vector<WalkQueue>& marked) {
  Grid grid(tables);
  StepWalker(tables, 2, &grid).Run();
  std::vector<int> rows;
  for (const WalkQueue& queue : marked) {
    if (std::find(rows.begin(), rows.end(), queue.class_index) == rows.end()) {
      rows.push_back(queue.class_index);
    }
    grid.Mark(queue.class_index, walker.Head(queue));
  }
  for (int c = 0; c < static_cast<int>(tables.classes.size()) && rows.size() < kMostRows; ++c) {
    if (std::find(rows.begin(), rows.end(), c) == rows.end()) rows.push_back(c);
  }
  std::sort(rows.begin(), rows.end());
  return grid.Text(rows);
}

std::string Quoted(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](char c) { return c == '"' || c == '\\' || c < ' '; }),
             text.end());
  return absl::StrCat("\"", text, "\"");
}

std::string Drawing(const WaitGraph& graph, const StepWalker& walker,
                    const std::vector<Edge>& circle) {
  std::vector<std::string> lines = {"digraph deadlock {"};
  for (const Edge& edge : circle) {
    const WalkQueue& from = graph.queue(edge.from);
    lines.push_back(absl::StrCat(
        "  q", edge.from,
        " [shape=box label=", Quoted(absl::StrCat(NameOf(from), ": ", walker.Head(from))), "];"));
    lines.push_back(
        absl::StrCat("  q", edge.from, " -> q", edge.to, " [label=", Quoted(edge.item), "];"));
  }
  lines.push_back("}");
  return absl::StrJoin(lines, "\n");
}

}  // namespace

void ReportDeadlock(const StepTables& tables, const StepWalker& walker, Diagnostics* findings) {
  const WaitGraph graph(tables, walker);
  const std::vector<Edge> circle = graph.ShortestCircle();
  Diagnostic finding{"order_v4", "", "", tables.eval ? "evaluation" : "training"};
  std::vector<std::string> lines;
  std::vector<WalkQueue> marked;
  std::vector<std::string> heads;
  for (const Edge& edge : circle) {
    const WalkQueue& from = graph.queue(edge.from);
    heads.push_back(
        absl::StrCat(from.class_index, from.communication ? " " : " in ", walker.Head(from)));
    lines.push_back(absl::StrCat("  ", NameOf(from), " at ", walker.Head(from), " waits until ",
                                 NameOf(graph.queue(edge.to)), " comes to ", edge.item));
    marked.push_back(from);
  }
  if (circle.empty()) {
    for (size_t i = 0; i < std::min<size_t>(graph.lost().size(), 8); ++i) {
      lines.push_back(graph.lost()[i]);
    }
    if (!graph.queues().empty()) marked.push_back(graph.queue(0));
    finding.text = absl::StrCat("the step never ends: ", NameOf(marked[0]), " stays at ",
                                walker.Head(marked[0]));
  } else {
    finding.text = absl::StrCat("the step never ends: a circle of ", circle.size(),
                                " waits: class ", absl::StrJoin(heads, " -> class "));
    finding.drawing = Drawing(graph, walker, circle);
  }
  lines.push_back("what has run, by time; * marks what never does:");
  lines.push_back(GridText(tables, walker, marked));
  finding.detail = absl::StrJoin(lines, "\n");
  findings->Add(std::move(finding));
}

}  // namespace mgc
