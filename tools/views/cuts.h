// Where a pipeline cuts the forward pass, as reports: the places at which a graph that names no
// layers may be cut, and the cuts of a plan.

#ifndef MGC_TOOLS_VIEWS_CUTS_H_
#define MGC_TOOLS_VIEWS_CUTS_H_

#include <string>
#include <vector>

#include "graph/base/json_writer.h"
#include "graph/plan/plan.h"
#include "passes/cut_layers.h"

namespace mgc {

// A line for each place: the value behind whose node it is, the bytes of a micro-batch that would
// cross from rank to rank if tp and cp cut none of them, the share of the forward pass' time before
// it, `cut` where a layer ends. Of the places that none is cut at, only the narrow ones, unless
// `all`.
std::string PlacesText(const std::vector<CutPoint>& points, bool all);

// A list of all places, one object each.
std::string PlacesJson(const std::vector<CutPoint>& points);

// A line for each stage but the last: the stage, the values of the plan's model that are made until
// there and read behind it, the bytes that a rank sends on for a micro-batch, the share of the
// forward pass' time until there. Nothing for a plan of one stage. Unless `all`, neighbouring cuts
// at the same values but for the layer, of as many bytes and with as much time between them, are
// one row.
std::string CutsText(const Plan& plan, bool all = false);

// "cuts": [{"behind_stage", "values", "bytes", "before"}].
void WriteCuts(const Plan& plan, JsonWriter* json);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_CUTS_H_
