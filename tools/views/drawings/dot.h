// A plan as a drawing in the DOT language: an overview (tools/views/drawings/dot_overview.h), or a
// cluster for each stage, in it one for each segment that the stage calls. Plans of more than
// kMostStagesInDetail stages are drawn as the one unless asked otherwise, smaller ones as the
// other.
//
// In detail, a rank class is drawn once. Unless asked otherwise, layers that run the same segment
// are one cluster (`layer.forward x12`), stages that call the same segments the same number of
// times are one, and each segment is drawn in full only where it stands first. Collectives have
// shapes of their own with label, group and bytes. Phases differ in outline and heading as well as
// in colour (Okabe and Ito's palette): forward solid, backward dashed, update dotted.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_DOT_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_DOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/plan/plan.h"

namespace mgc {

inline constexpr size_t kMostStagesInDetail = 4;

enum class DotExpand : uint8_t {
  kNone,      // the overview
  kSegments,  // the drawing in detail
  kLayers,    // in it every layer by itself
  kStages,    // every stage by itself
  kAll,       // both, and every instruction wherever it stands
};

struct DotOptions {
  absl::optional<DotExpand> expand;  // none: as the plan is large
  // Of the update, only collectives are drawn. With more nodes than this, its segments and then all
  // others are folded too.
  int max_nodes = 300;
};

struct DotDrawing {
  std::string dot;
  int nodes = 0;
  int edges = 0;
  std::vector<std::string> collapsed;  // what is not drawn by itself, a line each
};

DotDrawing DrawPlan(const Plan& plan, const DotOptions& options);

// {"nodes", "edges", "collapsed", "dot"}
std::string DotJson(const DotDrawing& drawing);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_DOT_H_
