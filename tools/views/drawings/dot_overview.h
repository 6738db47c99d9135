// A plan as one small picture in the DOT language: a box for each rank class, with what it holds,
// sends and needs, in lines of four; an arrow for what goes to its neighbours in each direction.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_DOT_OVERVIEW_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_DOT_OVERVIEW_H_

#include "graph/plan/plan.h"
#include "tools/views/drawings/dot.h"

namespace mgc {

// At most 1,600 x 1,000 points. Of more than 16 classes, neighbours that are alike are one box.
DotDrawing DrawOverview(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_DOT_OVERVIEW_H_
