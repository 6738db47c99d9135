// The optimizers, each said in one place: which op steps a parameter, and in which words users ask
// for it. All else follows from the ops' signatures (graph/ops/optimizer.cc), by which compiler,
// proof and trainer know what a parameter keeps and what a step is given:
//
//   step(param, grad, states..., scalars..., clip) -> param, states...
//
// A state is kept by the name of its result, `m` of `layers.0.mlp.up` as `layers.0.mlp.up/m`, in
// the parameter's type. A scalar is an input of the step by the name of the operand, `clip` apart,
// the number that makes gradients means and clips them.
//
// An optimizer that acts on whole matrices has a second op, which makes of the gradient what its
// step follows, and keeps the states: direction(grad, states..., scalars..., clip) -> direction,
// states...; between both the direction is made orthogonal (graph/ir/newton_schulz.h).

#ifndef MGC_GRAPH_IR_OPTIMIZERS_H_
#define MGC_GRAPH_IR_OPTIMIZERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/types/attrs.h"

namespace mgc {

struct Optimizer {
  absl::string_view name;
  absl::string_view doc;  // what it is, and where it is from
  absl::string_view step;
  absl::string_view direction = "";  // of one of whole matrices
  // The optimizer of parameters that are no matrix of a layer; empty: it steps all of them.
  absl::string_view others = "";
};

// The first one is what steps a parameter that says nothing else.
absl::Span<const Optimizer> Optimizers();
// Null when there is none of that name.
const Optimizer* FindOptimizer(absl::string_view name);

// What belongs to the attributes of a parameter, where it is not the first optimizer at the step's
// own rate and weight decay.
inline constexpr char kOptimizerAttr[] = "optimizer";     // a name
inline constexpr char kRateScaleAttr[] = "lr_scale";      // times the step's rate, ...
inline constexpr char kDecayScaleAttr[] = "decay_scale";  // ... and times its weight decay
// Of a parameter that is stepped as a matrix: so many of its dims, the first ones, count its rows.
inline constexpr char kRowDimsAttr[] = "row_dims";

const Optimizer& OptimizerOf(const Attrs& of_param);

// The form of an optimizer's op that takes a flag behind its operands: where it is 0 results are
// the operands that they would have taken the place of. Null: it has none.
const OpDef* GuardedForm(const OpDef& op);

// What it keeps of each parameter: suffixes behind the parameter's name, in the op's order.
std::vector<std::string> StatesOf(const Optimizer& optimizer);
std::string StateName(absl::string_view param, absl::string_view state);

// The scalars that it is given, in the ops' order.
std::vector<std::string> ScalarsOf(const Optimizer& optimizer);
// Those that the training step of a model is given, of all its parameters' optimizers, and the
// bound of the gradient's norm.
std::vector<std::string> UpdateScalars(const Graph& model);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_OPTIMIZERS_H_
