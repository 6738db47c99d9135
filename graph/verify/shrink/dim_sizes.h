// Small sizes for the dims of a plan, under which its instructions are still the same program.
//
// Dims of one logical name and size are one *variable*; so are dims that stand for the same factor
// of some op. A dim made of several factors is their product. What the plan's shardings do to a dim
// at its real size they must do at the small one: axes that divide it divide it, axes that exhaust
// it exhaust it, axes that leave a rest leave one, with short and empty shards. A size that an
// attribute states (a slice) stays as it is.

#ifndef MGC_GRAPH_VERIFY_SHRINK_DIM_SIZES_H_
#define MGC_GRAPH_VERIFY_SHRINK_DIM_SIZES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/op.h"
#include "graph/types/factor_rule.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

class DimSizes {
 public:
  // `real` is the plan's mesh. Both meshes have the same axes and must outlive the table.
  DimSizes(const Mesh& real, const Mesh& small) : real_(real), small_(small) {}

  // A tensor of the plan; `sharding` may be null (values of the model).
  void AddTensor(const TensorType& type, const Sharding* sharding);
  // The sizes of a tensor that has been added are numbers of things and stay as they are.
  void KeepSizes(const TensorType& type);
  // A use of an op over tensors that have been added: ties its factors to their dims.
  void AddUse(const FactorRule& rule, absl::Span<const TensorType* const> operands,
              absl::Span<const Sharding* const> operand_shardings,
              absl::Span<const TensorType* const> results,
              absl::Span<const Sharding* const> result_shardings);

  struct Wishes {
    bool keep_even = false;     // of dims that nothing cuts: even where the real ones are
    bool keep_unnamed = false;  // dims that nothing cuts nor names keep their size
  };
  // Chooses all sizes. An error when the constraints contradict each other: [meaning_v1].
  absl::Status Solve(const Wishes& wishes);

  // After Solve: the type at small sizes. The tensor has been added.
  TensorType Small(const TensorType& type) const;

 private:
  struct Variable {
    int64_t size = 0;
    int64_t multiple = 1;
    std::string name;
    bool fixed = false;
    std::vector<AxisList> cuts;
    int64_t small = 0;  // 0 until solved
  };
  struct Product {
    int whole = 0;
    std::vector<int> factors;
  };
  using Key = std::pair<std::string, int64_t>;  // name, size

  int Find(const std::string& name, int64_t size);
  int Root(int variable) const;
  void Unite(int a, int b);
  void Cut(int variable, const AxisList& axes);
  void TieFactors(const TensorFactors& factors, const TensorType& type,
                  std::vector<int>* variables);
  void TieProducts(const FactorRule& rule, const TensorFactors& factors, const TensorType& type,
                   std::vector<int>* variables);
  void CutFactors(const FactorRule& rule, const TensorFactors& factors, const Sharding* sharding,
                  const std::vector<int>& variables);
  absl::Status Choose(Variable* variable, bool keep_even, std::vector<int64_t>* used) const;
  bool Fits(const Variable& variable, int64_t size) const;
  absl::Status SolveProducts();

  const Mesh& real_;
  const Mesh& small_;
  std::map<Key, int> keys_;
  std::vector<Variable> variables_;
  std::vector<int> parents_;
  std::vector<Product> products_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_DIM_SIZES_H_
