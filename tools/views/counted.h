// What the losses of a model are means over: its report `count`, in words.

#ifndef MGC_TOOLS_VIEWS_COUNTED_H_
#define MGC_TOOLS_VIEWS_COUNTED_H_

#include <string>

#include "graph/ir/graph.h"

namespace mgc {

// `tokens` or `samples` where the count is a sum over data of [samples, tokens of a sample] or of
// [samples]; else `counts`.
std::string CountedUnit(const Graph& model);

// `tokens: %count = total(%weights f32[batch=8,seq=16])`.
std::string CountedText(const Graph& model);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_COUNTED_H_
