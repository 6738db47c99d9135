#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/views/format.h"
#include "tools/views/page/page_parts.h"
#include "tools/views/page/page_style.h"
#include "tools/views/schedule.h"

namespace mgc {
namespace {

constexpr int64_t kRow = 30;  // pixels; the names beside it too
constexpr int64_t kComputed = 16;
constexpr int64_t kCommunicated = 8;
constexpr size_t kMostNamed = 100000;  // spans of a step

// Collectives of a class that follow each other at once are one bar.
struct Bar {
  const SimulatedSpan* span = nullptr;
  int64_t end_ns = 0;
  int64_t spans = 1;
};

bool IsSendOrReceive(const SimulatedSpan& span) {
  return absl::StrContains(span.name, "SEND_") || absl::StrContains(span.name, "RECV_");
}

const char* LookOf(const SimulatedSpan& span) {
  if (span.communication) {
    if (!IsSendOrReceive(span)) return "collective";
    return absl::StrContains(span.name, "SEND_") ? "sent" : "received";
  }
  if (absl::StrContains(span.name, "F")) return "forward";
  if (absl::StrContains(span.name, "B")) return "backward";
  return absl::StrContains(span.name, "P") ? "prepare" : "update";
}

std::vector<Bar> BarsOf(const SimulatedStep& step, int coordinate, bool communication) {
  const int64_t unseen = step.makespan_ns / kTimeWidth * 50;  // less than a pixel
  std::vector<Bar> bars;
  for (const SimulatedSpan& span : step.spans) {
    if (span.coordinate != coordinate || span.communication != communication) continue;
    const bool joins = communication && !IsSendOrReceive(span) && !bars.empty() &&
                       !IsSendOrReceive(*bars.back().span) &&
                       span.begin_ns - bars.back().end_ns <= unseen;
    if (joins) {
      bars.back().end_ns = span.end_ns;
      ++bars.back().spans;
    } else {
      bars.push_back({&span, span.end_ns, 1});
    }
  }
  return bars;
}

void AddBar(const SimulatedStep& step, const Bar& bar, int64_t top, int64_t height, Markup* page) {
  const int64_t begin = PlaceInTime(bar.span->begin_ns, step);
  const int64_t width = std::max<int64_t>(PlaceInTime(bar.end_ns, step) - begin, 1);
  const std::string name = bar.spans > 1 ? absl::StrCat(bar.spans, " collectives") : bar.span->name;
  page->Open("rect", {{"class", LookOf(*bar.span)},
                      {"x", absl::StrCat(begin)},
                      {"y", absl::StrCat(top)},
                      {"width", absl::StrCat(width)},
                      {"height", absl::StrCat(height)},
                      {"data-begin", absl::StrCat(bar.span->begin_ns)},
                      {"data-end", absl::StrCat(bar.end_ns)}});
  page->Element("title", {},
                absl::StrCat(name, ": ", DurationText(bar.end_ns - bar.span->begin_ns), ", from ",
                             DurationText(bar.span->begin_ns)));
  page->Close().NewLine();
}

// Bars of one look as one path, for steps of too many to be told apart by name.
void AddPaths(const SimulatedStep& step, const std::vector<Bar>& bars, int64_t top, int64_t height,
              Markup* page) {
  std::map<std::string, std::string> paths;
  for (const Bar& bar : bars) {
    const int64_t begin = PlaceInTime(bar.span->begin_ns, step);
    const int64_t width = std::max<int64_t>(PlaceInTime(bar.end_ns, step) - begin, 1);
    absl::StrAppend(&paths[LookOf(*bar.span)], "M", begin, " ", top, "h", width, "v", height, "h-",
                    width, "z");
  }
  for (const auto& [look, path] : paths) {
    page->Open("path", {{"class", look}, {"d", path}}).Close().NewLine();
  }
}

void AddBars(const SimulatedStep& step, const std::vector<Bar>& bars, int64_t top, int64_t height,
             Markup* page) {
  if (step.spans.size() > kMostNamed) return AddPaths(step, bars, top, height, page);
  for (const Bar& bar : bars) AddBar(step, bar, top, height, page);
}

void AddKey(Markup* page) {
  page->Open("p", {{"class", "key"}});
  for (const char* name :
       {"prepare", "forward", "backward", "update", "collective", "sent", "received"}) {
    page->Open("span").Element("i", {{"class", name}}, "").Text(name).Close();
  }
  page->Text("zoom ").Void("input", {{"type", "range"},
                                     {"min", "100"},
                                     {"max", "3000"},
                                     {"value", "100"},
                                     {"aria-label", "zoom"},
                                     {"oninput", kZoomScript}});
  page->Close().NewLine();
}

}  // namespace

std::vector<int> DrawnClasses(const Plan& plan) {
  constexpr int kMost = 16;
  const int classes = static_cast<int>(plan.classes.size());
  std::vector<int> drawn;
  for (int c = 0; c < classes; ++c) {
    if (classes <= kMost || c < kMost / 2 || c >= classes - kMost / 2) drawn.push_back(c);
  }
  return drawn;
}

int64_t PlaceInTime(int64_t ns, const SimulatedStep& step) {
  const double share =
      static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(step.makespan_ns, 1));
  return static_cast<int64_t>(std::llround(share * kTimeWidth));
}

void AddTimeScale(const SimulatedStep& step, Markup* page) {
  page->Open("div", {{"class", "scale"}});
  for (const int64_t part : {0, 1, 2, 3, 4}) {
    page->Element("span", {}, DurationText(step.makespan_ns / 4 * part));
  }
  page->Close();
}

void AddSchedule(const Plan& plan, const SimulatedStep& step, Markup* page) {
  const std::vector<int> drawn = DrawnClasses(plan);
  page->Element("h2", {}, "The predicted step").NewLine();
  AddKey(page);
  if (drawn.size() < plan.classes.size()) {
    page->Element(
        "p", {},
        absl::StrCat("Classes ", drawn[drawn.size() / 2 - 1] + 1, " to ",
                     drawn[drawn.size() / 2] - 1, " are not drawn; mgc-plan trace has all."));
  }
  page->Open("div", {{"class", "timed"}}).Open("div", {{"class", "names"}});
  for (const int c : drawn) page->Element("div", {}, absl::StrCat("pp ", c));
  page->Close().Open("div", {{"class", "scroll"}}).Open("div", {{"class", "zoom"}});
  const int64_t height = kRow * static_cast<int64_t>(drawn.size());
  page->Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                     {"viewBox", absl::StrCat("0 0 ", kTimeWidth, " ", height)},
                     {"preserveAspectRatio", "none"},
                     {"width", "100%"},
                     {"height", absl::StrCat(height)}});
  page->NewLine();
  for (size_t row = 0; row < drawn.size(); ++row) {
    const int64_t top = kRow * static_cast<int64_t>(row);
    AddBars(step, BarsOf(step, drawn[row], false), top, kComputed, page);
    AddBars(step, BarsOf(step, drawn[row], true), top + kComputed + 1, kCommunicated, page);
  }
  page->Close();
  AddTimeScale(step, page);
  page->Close().Close().Close().NewLine();
  ScheduleRows computed;
  for (const PlanClass& plan_class : plan.classes)
    computed.push_back(ComputedEntriesOf(plan_class));
  page->Element("pre", {}, FoldedSchedule(computed)).NewLine();
}

}  // namespace mgc
