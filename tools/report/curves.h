// Numbers along the steps of a run, as lines.

#ifndef MGC_TOOLS_REPORT_CURVES_H_
#define MGC_TOOLS_REPORT_CURVES_H_

#include <string>
#include <vector>

#include "tools/report/run_log.h"
#include "tools/views/page/markup.h"

namespace mgc {

struct Curve {
  std::string key;   // as in the metrics
  std::string look;  // a class of the page's style
};

struct CurvePlot {
  std::string title;
  std::vector<Curve> curves;  // those without points are left out
  std::string unit;           // behind numbers: `ms`; may be empty
  double scale = 1;           // numbers of the metrics are multiplied by it to be of the unit
};

// A heading, a key and a picture with an axis of steps and one of numbers from the lowest to the
// highest finite one; nothing where no curve has a finite point. A line has a gap where a number is
// not finite. Of more than 500 points every second, third, ... is drawn, and the last.
//
// Numbers are also there to be read: circles have `data-key`, `data-step` and `data-value`, which
// is the number of the metrics.
void AddCurves(const CurvePlot& plot, const RunLog& log, Markup* page);

}  // namespace mgc

#endif  // MGC_TOOLS_REPORT_CURVES_H_
