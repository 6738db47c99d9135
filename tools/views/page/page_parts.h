// The parts of a page, in its order. Each is one element, or several, of its body.

#ifndef MGC_TOOLS_VIEWS_PAGE_PAGE_PARTS_H_
#define MGC_TOOLS_VIEWS_PAGE_PAGE_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"
#include "passes/plan/time/simulated_step.h"
#include "tools/views/page/markup.h"

namespace mgc {

// Title and looks of any page.
void AddHead(absl::string_view title, Markup* page);

// Boxes of rank classes with their ranks as a grid, and arrows for what goes between them.
void AddOverview(const Plan& plan, Markup* page);

// The predicted step: a row for each class, what it computes above what it communicates.
void AddSchedule(const Plan& plan, const SimulatedStep& step, Markup* page);

// Bytes in use of the class with the highest peak, and of the first and the last, along the
// predicted step; a table of all.
void AddMemory(const Plan& plan, const SimulatedStep& step, Markup* page);

// What is communicated, and the instructions of every segment.
void AddLists(const Plan& plan, Markup* page);

// Classes that get a row: all, or of more than 16 the first and the last eight.
std::vector<int> DrawnClasses(const Plan& plan);

// Pictures along time are that wide, in units of their own: those of bars and curves stand under
// each other.
inline constexpr int64_t kTimeWidth = 100000;

// Where a time of a step lies in it.
int64_t PlaceInTime(int64_t ns, const SimulatedStep& step);

// `0`, a half and all of the step below a picture along time.
void AddTimeScale(const SimulatedStep& step, Markup* page);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_PAGE_PARTS_H_
