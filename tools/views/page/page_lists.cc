#include "absl/strings/str_cat.h"
#include "graph/base/units.h"
#include "tools/views/comm.h"
#include "tools/views/instructions.h"
#include "tools/views/page/page_parts.h"
#include "tools/views/show.h"

namespace mgc {
namespace {

void AddFolded(absl::string_view summary, absl::string_view text, Markup* page) {
  page->Open("details").Element("summary", {}, summary).NewLine();
  page->Element("pre", {}, text).Close().NewLine();
}

std::string CallsOfClass(const Plan& plan, const PlanClass& plan_class) {
  std::string text;
  for (const Chunk& chunk : plan_class.chunks) {
    const auto line = [&](absl::string_view phase, const std::vector<Call>& calls) {
      if (calls.empty()) return;
      absl::StrAppend(&text, "stage ", chunk.stage, " ", phase, ": ", CallsText(plan, calls), "\n");
    };
    line("prepare", chunk.prepare);
    line("forward", chunk.forward);
    line("backward", chunk.backward);
    line("beside the last backward", ReductionsOf(chunk));
  }
  return absl::StrCat(text, "update: ", CallsText(plan, plan_class.update), "\n");
}

}  // namespace

void AddLists(const Plan& plan, Markup* page) {
  page->Element("h2", {}, "Communication").NewLine();
  page->Element("pre", {}, CommText(plan)).NewLine();
  page->Element("h2", {}, "What ranks run").NewLine();
  for (const int c : DrawnClasses(plan)) {
    const PlanClass& plan_class = plan.classes[static_cast<size_t>(c)];
    AddFolded(absl::StrCat("pp ", plan_class.coordinate, ": segments in their order"),
              CallsOfClass(plan, plan_class), page);
  }
  for (const Segment& segment : plan.segments) {
    std::string lines;
    for (const Instr& instr : segment.instrs) {
      absl::StrAppend(&lines, InstrText(plan, segment, instr), "\n");
    }
    AddFolded(absl::StrCat(segment.name, ": ", segment.instrs.size(), " instructions, ",
                           BytesText(segment.transient_bytes), " transient"),
              lines, page);
  }
}

}  // namespace mgc
