#include "graph/plan/step_walk.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/plan/step_tables.h"
#include "graph/plan/step_walker.h"

namespace mgc {
namespace {

constexpr size_t kMostLines = 64;

std::string Describe(const StepWalker& walker, const WalkQueue& queue) {
  std::vector<std::string> needs;
  for (const WalkNeed& need : walker.Needs(queue)) {
    const std::string whose = need.queue.class_index == queue.class_index
                                  ? ""
                                  : absl::StrCat("class ", need.queue.class_index, "'s ");
    const std::string stands = walker.IsAtEnd(need.queue)
                                   ? "is at its end"
                                   : absl::StrCat("stands at ", walker.Head(need.queue));
    needs.push_back(absl::StrCat("waits for ", whose, need.item, "; that ",
                                 need.queue.communication ? "communication " : "computation ",
                                 stands));
  }
  if (needs.empty()) needs.push_back("can never run");
  return absl::StrCat("class ", queue.class_index,
                      queue.communication ? " communication at " : " computation at ",
                      walker.Head(queue), " ", absl::StrJoin(needs, ", and "));
}

}  // namespace

std::string WalkSteps(const Plan& plan, bool eval, int steps, StepVisitor* visitor) {
  return WalkSteps(StepTables(plan, eval), steps, visitor);
}

std::string WalkSteps(const StepTables& tables, int steps, StepVisitor* visitor) {
  StepWalker walker(tables, steps, visitor);
  if (walker.Run()) return "";
  std::vector<std::string> lines;
  for (int c = 0; c < static_cast<int>(tables.classes.size()); ++c) {
    for (const bool communication : {false, true}) {
      const WalkQueue queue{c, communication};
      if (!walker.IsAtEnd(queue) && lines.size() < kMostLines)
        lines.push_back(Describe(walker, queue));
    }
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace mgc
