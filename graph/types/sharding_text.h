// Words for shardings in messages.

#ifndef MGC_GRAPH_TYPES_SHARDING_TEXT_H_
#define MGC_GRAPH_TYPES_SHARDING_TEXT_H_

#include <string>

#include "graph/types/mesh.h"
#include "graph/types/sharding.h"

namespace mgc {

// `a sum over tp`, `a maximum over tp`, or both.
std::string OwedText(AxisSet sum, AxisSet max, const Mesh& mesh);
// What pays it: `an all_reduce or reduce_scatter over tp`.
std::string PayText(AxisSet sum, AxisSet max, const Mesh& mesh);

// What is missing between a value laid out as `from` and its use as `to`: `a sum over tp is owed
// and not paid: an all_reduce or reduce_scatter over tp is missing`. Empty when they are equal.
std::string ExplainChange(const Sharding& from, const Sharding& to, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_SHARDING_TEXT_H_
