// The plans of a search as points, memory across and time up: in a page, or as a file of its own.

#ifndef MGC_TOOLS_VIEWS_PAGE_FRONT_PLOT_H_
#define MGC_TOOLS_VIEWS_PAGE_FRONT_PLOT_H_

#include <string>

#include "tools/views/found_plans.h"
#include "tools/views/page/markup.h"

namespace mgc {

// The front is a line of points with their flags beside them; other compiled plans are points that
// name themselves under the mouse, as far as they lie in the picture. A line stands where a
// device's memory ends; at the picture's edge where that is too far off to be drawn to scale.
void AddFrontPlot(const SearchAnswer& answer, Markup* page);

// The same as an SVG file with a title, which any browser shows. The same for the same answer.
std::string FrontPicture(const SearchAnswer& answer);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_FRONT_PLOT_H_
