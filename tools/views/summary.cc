#include "tools/views/summary.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/units.h"
#include "tools/views/format.h"
#include "tools/views/memory.h"
#include "tools/views/show.h"

namespace mgc {

std::string SummaryText(const Plan& plan, absl::string_view file, bool limited) {
  const int64_t ranks = plan.mesh.world_size();
  const std::string sizes = MeshSizesText(plan.mesh);
  const std::string peak = BytesText(HighestPeak(plan));
  return absl::StrCat(
      EscapeBytes(file), ": ", CountText(ParameterCount(plan)), " parameters on ", ranks,
      ranks == 1 ? " rank" : " ranks", sizes.empty() ? "" : absl::StrCat(" (", sizes, ")"),
      ", step ", DurationText(plan.predicted_step_ns), " predicted on ", plan.machine.name,
      limited ? absl::StrCat(", fits: peak ", peak, " of ", BytesText(plan.machine.memory))
              : absl::StrCat(", peak ", peak),
      " a rank\n");
}

}  // namespace mgc
