// Dim classes: the dims of a model that are one and the same thing. Two dims are of one class when
// they stand for one factor of some op: what a product contracts, what an addition lines up. A
// strategy can cut a class as it cuts a logical name; where a model names no dims, classes are all
// that it can speak of.
//
//   param %up: f32[16,64]        classes   batch     8  %x 0, %h 0
//   data  %x:  f32[8,16]                   up#0     16  %up 0, %x 1
//   %h = matmul(%x, %up)                   up#1     64  %up 1, %h 1

#ifndef MGC_PASSES_GRAPH_DIM_CLASSES_H_
#define MGC_PASSES_GRAPH_DIM_CLASSES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

struct DimOfValue {
  ValueId value = kNone;
  int dim = 0;
};

struct DimClass {
  // The first name that the model gives one of its dims. If it gives none: `batch` for samples, the
  // first dim of data that belongs to no parameter; else the first parameter, data input or value
  // and the dim of it, `layers.*.mlp.up#1`, alike for the same place of every layer.
  std::string name;
  int64_t size = 0;
  std::vector<DimOfValue> dims;  // in the order of values
};

class DimClasses {
 public:
  // Of a logical graph. Dims of one element have classes too.
  explicit DimClasses(const Graph& graph);

  // In the order of their first dims.
  const std::vector<DimClass>& classes() const { return classes_; }
  const DimClass& Of(ValueId value, int dim) const {
    return classes_[static_cast<size_t>(class_of_[First(value) + static_cast<size_t>(dim)])];
  }

 private:
  size_t First(ValueId value) const { return first_[static_cast<size_t>(value)]; }
  int Root(int dim);
  void Unite(const Graph& graph, const Node& node);
  void MakeClasses(const Graph& graph);

  std::vector<size_t> first_;  // by value: its first dim among all
  std::vector<int> parents_;   // by dim
  std::vector<int> class_of_;  // by dim
  std::vector<DimClass> classes_;
};

// By the name of a class, the names that dims of classes called so go by in the model, that one
// first: rows of a strategy speak of names.
std::map<std::string, std::vector<std::string>> NamesByClass(const Graph& model,
                                                             const DimClasses& classes);

// The model with a name for every dim that has none: its class's. What the user has named keeps its
// name. Runs first, so that strategies, reports and the proof have names for all dims.
//
//   param %up: f32[16,64]   ->   param %up: f32["up#0"=16,"up#1"=64]
Graph NameDims(Graph model);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_DIM_CLASSES_H_
