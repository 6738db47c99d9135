// Small sizes for the dims of a plan, under which its instructions are still the same program.
//
// Dims of one logical name and size are one *variable*; so are dims that stand for the same factor
// of some op. A dim made of several factors is their product. What the plan's shardings do to a dim
// at its real size they must do at the small one: axes that divide it divide it, axes that exhaust
// it exhaust it, axes that leave a rest leave one, with short and empty shards. Sizes that
// attributes of one use state (where a slice begins and ends, what is laid one behind the other)
// keep their ratios: each is a whole number of a unit, their greatest common divisor, and the unit
// shrinks. Small ones stay as they are.

#ifndef MGC_GRAPH_VERIFY_SHRINK_DIM_SIZES_H_
#define MGC_GRAPH_VERIFY_SHRINK_DIM_SIZES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
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
    bool cut_even = false;      // with keep_even: of dims that are cut too
    // Dims whose factors contradict each other, a vector of 8 x 4 in one place and of 4 x 8 in
    // another, shrink as those do that attributes state, together with their factors.
    bool keep_products = false;
    bool shrink_stated = false;  // sizes that attributes state shrink where they are small too
    // Dims of different sizes may have one small size: whatever takes one for the other has been
    // refused for its types, at the real sizes. Dims of one size never have one.
    bool share_sizes = false;
  };
  // Chooses all sizes. An error when the constraints contradict each other: [meaning_v1].
  absl::Status Solve(const Wishes& wishes);

  // After Solve: all of them, in a fixed order.
  std::vector<int64_t> Chosen() const;
  // After Solve: the type at small sizes. Of a tensor that has not been added: at its own.
  TensorType Small(const TensorType& type) const;

 private:
  static constexpr int64_t kLargestMultiple = 2;  // at small sizes
  static constexpr size_t kMostVariables = 4096;  // no model has a hundred

  struct Variable {
    int64_t size = 0;
    int64_t multiple = 1;
    std::string name;
    bool counted = false;  // a number of things: stays as it is
    bool stated = false;   // by an attribute: shrinks by the unit of its use
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
  bool Cut(int variable, const AxisList& axes);  // whether it was not cut so before
  void TieFactors(const TensorFactors& factors, const TensorType& type,
                  std::vector<int>* variables);
  void TieProducts(const FactorRule& rule, const TensorFactors& factors, const TensorType& type,
                   std::vector<int>* variables);
  void CutFactors(const FactorRule& rule, const TensorFactors& factors, const Sharding* sharding,
                  const std::vector<int>& variables);
  bool UniteLastFactors();
  absl::optional<FactorAxes> AxesOf(const Product& product, const AxisList& axes, bool small) const;
  bool CutProducts();
  const Variable* Misfit() const;
  std::vector<int> StatedGroups();
  absl::Status ScaleGroup(const std::vector<int>& members, const Wishes& wishes);
  absl::Status ScaleStated(const Wishes& wishes);
  absl::Status Choose(Variable* variable, const Wishes& wishes,
                      std::vector<const Variable*>* used) const;
  // `exactly`: what axes exhaust stays exhausted.
  bool Fits(const Variable& variable, int64_t size, bool exactly) const;
  absl::Status ChooseAll(const Wishes& wishes);
  Variable* Contradicted();

  const Mesh& real_;
  const Mesh& small_;
  std::map<Key, int> keys_;
  std::vector<Variable> variables_;
  std::vector<int> parents_;
  std::vector<Product> products_;
  std::vector<std::vector<int>> stated_;  // that attributes of one use state
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_DIM_SIZES_H_
