// Whether a folded model (passes/fold/fold_model.h) can be staged in the place of the whole one:
// whether what passes have made of its layers would be the same in all layers that they stand for.

#ifndef MGC_PASSES_PLAN_STAGE_CHECK_FOLD_H_
#define MGC_PASSES_PLAN_STAGE_CHECK_FOLD_H_

#include "absl/status/status.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/stage/class_stager.h"
#include "passes/plan/stage/crossings.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

// Of a local graph whose layers are folded. FailedPrecondition, saying what, where
//   * a value goes on from its layer otherwise than as the residual stream;
//   * what a layer that stands for several takes of the stream, or of its gradient, has another
//     type or sharding than what it leaves: its copies would not read what they write;
//   * a name, a text attribute or an origin in a layer would not fold to the same text for another
//     number;
//   * the norm's vector has the entries of such layers in more than one place.
absl::Status CheckFold(const Parts& parts, const Crossings& crossings, const LayerMap& layers);

// Of all segments that were made of the graph. FailedPrecondition where of a part of a layer that
// stands for several there is another than of all other kept layers of its kind: how near an end of
// the model is may then be what makes it so.
absl::Status CheckNeighbours(const SegmentCache& segments, const LayerMap& layers);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_CHECK_FOLD_H_
