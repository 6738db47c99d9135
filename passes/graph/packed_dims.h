// Dims that are read in parts only (passes/graph/unpack.h).

#ifndef MGC_PASSES_GRAPH_PACKED_DIMS_H_
#define MGC_PASSES_GRAPH_PACKED_DIMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "graph/types/factor_rule.h"

namespace mgc {

// Elements [begin, end) of a dim.
struct DimPart {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const DimPart& a, const DimPart& b) {
    return a.begin == b.begin && a.end == b.end;
  }
  friend bool operator<(const DimPart& a, const DimPart& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  }
};

class PackedDims {
 public:
  // `model` is logical and must outlive this.
  explicit PackedDims(const Graph& model);

  // The parts that all readers of a value take along a dim, ascending: two or more, which between
  // them are the dim. Empty where that is not so.
  const std::vector<DimPart>& PartsOf(ValueId value, int dim) const {
    return parts_[static_cast<size_t>(value)][static_cast<size_t>(dim)];
  }

  // How a dim of an operand goes on in the one result of a node: as the dim that the same factor
  // leads. `scale` elements of the operand's dim are `result_scale` of the result's.
  struct Flow {
    int factor = 0;
    int result_dim = 0;
    int64_t scale = 1;
    int64_t result_scale = 1;
  };
  // Nothing where parts of the operand do not make parts of the result.
  absl::optional<Flow> FlowOf(NodeId node, size_t operand, int dim) const;
  // The dim of an operand that a factor leads, with the elements one step of it takes there; -1
  // where the operand lacks the factor.
  struct Led {
    int dim = -1;
    int64_t scale = 1;
  };
  Led LedBy(NodeId node, size_t operand, int factor) const;
  // Whether a node takes a part of its operand along a dim.
  bool IsPartAlong(NodeId node, int dim) const;
  const std::vector<NodeId>& UsersOf(ValueId value) const {
    return users_[static_cast<size_t>(value)];
  }

 private:
  std::vector<DimPart> FindParts(ValueId value, int dim) const;
  bool AddParts(NodeId node, size_t operand, int dim, std::vector<DimPart>* parts) const;
  int64_t Scale(NodeId node, const DimFactors& factors) const;

  const Graph& model_;
  std::vector<FactorRule> rules_;           // by node
  std::vector<std::vector<NodeId>> users_;  // by value
  std::vector<bool> is_output_;             // by value: whoever looks at it reads it whole
  std::vector<std::vector<std::vector<DimPart>>> parts_;  // by value and dim
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_PACKED_DIMS_H_
