// Other sizes of a model: the same graph for a micro-batch or for sequences of another length than
// its text was written with.
//
//   data %x: f32[batch=8,seq=16,embed=32]       data %x: f32[batch=6,seq=16,embed=32]
//   %r = reshape(%x) {sizes=[128,32]}      ->   %r = reshape(%x) {sizes=[96,32]}
//
// A size changes in all dims that are one and the same thing (passes/graph/dim_classes.h); dims
// that are made of them, as merged rows are, follow, and so do attributes that state sizes of
// results. What states a place along a dim, a slice, stays. Runs before all passes, on a model with
// names for all dims (NameDims).

#ifndef MGC_PASSES_GRAPH_RESIZE_H_
#define MGC_PASSES_GRAPH_RESIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"

namespace mgc {

// A dim whose size is not the model's alone.
struct FreeDim {
  std::string name;
  int64_t size = 0;  // 0: the model has none
};

// The dim that counts samples: the first of data inputs.
FreeDim SamplesOf(const Graph& model);
// The dim that counts the tokens of a sample: the second of a text (TokensPerSample), and in a
// model without one the largest that is called `seq`.
FreeDim TokensOf(const Graph& model);

struct Resized {
  absl::optional<Graph> graph;  // without violations
  // What binds the size, a parameter, a slice or else a node that could not make its results, each
  // at its value's place, `%name`.
  Diagnostics violations;
  // Constants that state the size that changes, or a mean over it, and stay as they are.
  std::vector<std::string> notes;
};

// `model` with `size` in every dim called `dim.name` of dim.size elements. size >= 1. Violations
// have the label `label`.
Resized Resize(const Graph& model, const FreeDim& dim, int64_t size, absl::string_view label);

// Both: `samples` with violations T1, then `tokens` with T2. A model without tokens takes any.
Resized Resize(const Graph& model, int64_t samples, int64_t tokens);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_RESIZE_H_
