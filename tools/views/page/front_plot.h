// The plans of a search as points, memory across and time up.

#ifndef MGC_TOOLS_VIEWS_PAGE_FRONT_PLOT_H_
#define MGC_TOOLS_VIEWS_PAGE_FRONT_PLOT_H_

#include "tools/views/found_plans.h"
#include "tools/views/page/markup.h"

namespace mgc {

// The front is a line of points with their flags beside them; other compiled plans are points that
// name themselves under the mouse, as far as they lie in the picture. A line stands where a
// device's memory ends; at the picture's edge where that is too far off to be drawn to scale.
void AddFrontPlot(const SearchAnswer& answer, Markup* page);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_FRONT_PLOT_H_
