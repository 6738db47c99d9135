#include "tools/views/drawings/dot_overview.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/views/drawings/dot_writer.h"
#include "tools/views/drawings/looks.h"
#include "tools/views/format.h"
#include "tools/views/overview.h"

namespace mgc {
namespace {

constexpr size_t kMostClasses = 16;
constexpr size_t kClassesInLine = 4;
constexpr size_t kMostNumbers = 8;  // ranks in a line of the grid

std::string BoxId(size_t place) { return absl::StrCat("c", place); }

DotAttrs GraphAttrs(const Plan& plan) {
  return {{"label", absl::StrCat(TitleOf(plan), "\n", absl::StrJoin(StepFacts(plan), "\n"),
                                 "\nsolid blue: activations forward, dashed orange: their gradients"
                                 " back")},
          {"labelloc", "t"},
          {"newrank", "true"},
          {"nodesep", "0.9"},
          {"ranksep", "0.6"},
          {"size", "22.2,13.8"},  // inches of 72 points
          {"fontname", "Helvetica"}};
}

std::string ClassText(const Plan& plan, const OverviewClass& one) {
  const bool several = one.coordinates.size() > 1;
  std::string text = absl::StrCat(
      plan.classes.size() > 1 ? absl::StrCat("pp ", RangesText(one.coordinates), ": ") : "",
      several ? absl::StrCat(one.coordinates.size(), " x ") : "", one.ranks, " ranks\n");
  for (const OverviewChunk& chunk : one.chunks) absl::StrAppend(&text, ToString(chunk), "\n");
  absl::StrAppend(&text, PeakText(one), " a rank");
  for (const OverviewExchange& exchange : one.exchanges) {
    absl::StrAppend(&text, "\n", ToString(exchange));
  }
  return text;
}

// The first ranks of the first class.
std::string GridText(const Plan& plan) {
  const std::vector<int64_t> ranks = RanksOfClass(plan, 0);
  const RankGrid grid = GridOf(plan);
  const size_t width = static_cast<size_t>(grid.columns);
  std::string text = absl::StrCat("ranks of ", plan.classes.size() > 1 ? "pp 0" : "the plan",
                                  grid.text.empty() ? "" : absl::StrCat(":\n", grid.text));
  for (size_t line = 0; line * width < ranks.size(); ++line) {
    if (line == kMostNumbers) return absl::StrCat(text, "\n... to ", ranks.back());
    std::string numbers;
    for (size_t i = 0; i < std::min(width, kMostNumbers); ++i) {
      absl::StrAppend(&numbers, i > 0 ? " " : "", ranks[line * width + i]);
    }
    absl::StrAppend(&text, "\n", numbers, width > kMostNumbers ? " ..." : "");
  }
  return text;
}

DotAttrs LinkLook(const OverviewLink& link) {
  const TransferLook look = LookOfTransfer(link.forward);
  return {{"label", ToString(link)}, {"style", look.style},     {"color", look.color},
          {"fontcolor", look.color}, {"fontname", "Helvetica"}, {"penwidth", "2"},
          {"constraint", "false"}};
}

// Lines go to and fro, so that neighbours are always near.
void DrawClasses(const Plan& plan, const Overview& overview, DotWriter* dot) {
  for (size_t c = 0; c < overview.classes.size(); ++c) {
    if (c % kClassesInLine == 0) dot->BeginLine();
    dot->Node(BoxId(c), {{"label", ClassText(plan, overview.classes[c])},
                         {"shape", "box"},
                         {"style", "rounded,filled"},
                         {"fillcolor", "#F4F6F8"},
                         {"fontname", "Helvetica"}});
    const bool last = c % kClassesInLine + 1 == kClassesInLine || c + 1 == overview.classes.size();
    if (last) dot->EndLine();
  }
  // Only these hold boxes in their places.
  const DotAttrs unseen = {{"style", "invis"}};
  for (size_t c = 1; c < overview.classes.size(); ++c) {
    const bool to_the_left = c / kClassesInLine % 2 == 1 && c % kClassesInLine != 0;
    const std::string before = BoxId(c - 1);
    dot->Edge(to_the_left ? BoxId(c) : before, to_the_left ? before : BoxId(c), unseen);
  }
}

}  // namespace

DotDrawing DrawOverview(const Plan& plan) {
  const Overview overview = OverviewOf(plan, kMostClasses);
  DotWriter dot(GraphAttrs(plan));
  dot.Node("grid", {{"label", GridText(plan)}, {"shape", "box"}, {"fontname", "Courier"}});
  DrawClasses(plan, overview, &dot);
  if (!overview.classes.empty()) dot.Edge("grid", BoxId(0), {{"style", "invis"}});
  for (const OverviewLink& link : overview.links) {
    dot.Edge(BoxId(link.from), BoxId(link.to), LinkLook(link));
  }
  DotDrawing drawing;
  drawing.nodes = dot.nodes();
  drawing.edges = dot.edges();
  drawing.collapsed = {"stages are boxes without their segments; --expand segments draws them"};
  if (overview.classes.size() < plan.classes.size()) {
    drawing.collapsed.push_back("neighbouring classes that are alike are one box");
  }
  drawing.dot = std::move(dot).Finish();
  return drawing;
}

}  // namespace mgc
