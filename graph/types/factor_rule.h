// What an op says about parallelism: an einsum-like string over *factors*, the loop indices behind
// the dims of its operands and results.
//
//   matmul      b m k, b k n -> b m n       k is contracted: split, it leaves a sum owed
//   layer_norm  ... h!, h, h -> ... h!      h must be whole
//   reduce_max  ... v^ -> ...               v is contracted by a maximum
//   attention   b s (k g) d, b t! k d, ...  a dim made of several factors, major first
//
// From a rule follow the sharding of results, the sums owed, the local shapes and the work. Factors
// are matched by name within one rule; `...` stands for a run of dims, the same in every place.

#ifndef MGC_GRAPH_TYPES_FACTOR_RULE_H_
#define MGC_GRAPH_TYPES_FACTOR_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/types/axis.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct Factor {
  std::string name;
  int64_t size = -1;     // -1 until bound to types
  bool whole = false;    // `!`: no axis may cut it
  bool maximum = false;  // `^`: contracted by a maximum instead of a sum
  std::string dim_name;  // logical name of the dim it stands for alone; else empty
  int64_t multiple = 1;  // as Dim::multiple, for a factor that stands alone
};

using DimFactors = std::vector<int>;            // factors of one dim, major first
using TensorFactors = std::vector<DimFactors>;  // one entry per dim

struct FactorRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;
  std::vector<TensorFactors> results;

  // Index of the factor of that name, or -1.
  int Find(absl::string_view name) const;
  // True when the factor is a dim of result `r`.
  bool InResult(int factor, int r) const;
};

// A rule as an op writes it, split into names once, so that binding reads no text. Every text is
// accepted; what is no rule of the types at hand is refused by BindRule.
class RuleText {
 public:
  struct Name {
    std::string name;
    bool whole = false;
    bool maximum = false;
  };
  struct Tensor {
    std::string text;                     // for messages
    std::vector<std::vector<Name>> dims;  // names of each dim's factors, major first
    int run = -1;                         // the dim written `...`, if any
  };

  RuleText() = default;
  explicit RuleText(absl::string_view text);

  // Of a blank side: one tensor without dims, which binding reads as none where there is none.
  const std::vector<Tensor>& operands() const { return operands_; }
  const std::vector<Tensor>& results() const { return results_; }

 private:
  std::vector<Tensor> operands_;
  std::vector<Tensor> results_;
};

// Binds a rule to the types of operands (and, where given, results: needed for factors that the op
// creates). InvalidArgument when numbers of tensors or dims differ or one factor has two sizes or
// multiples; the message says which. A rule with one operand text applies it to every operand.
absl::StatusOr<FactorRule> BindRule(const RuleText& rule,
                                    absl::Span<const TensorType* const> operands,
                                    absl::Span<const TensorType* const> results);

// Axes given to each factor, by factor index.
using FactorAxes = std::vector<AxisList>;

// Distributes the axes of one dim to its factors: to the major factor while they divide it, to the
// next only when the previous is locally 1, so that tiles are runs of the dim. A dim of one factor
// may be cut unevenly. Returns false when an axis is left.
bool DistributeAxes(const DimFactors& dim, const FactorRule& rule, const AxisList& axes,
                    const Mesh& mesh, FactorAxes* out);

// The axes that cut each factor of one use of an op, by the first operand or result in which they
// do. A null sharding is whole. A value stored in pieces says nothing: ops work on its flat tile
// element by element.
FactorAxes FactorAxesOf(const FactorRule& rule, absl::Span<const Sharding* const> operands,
                        absl::Span<const Sharding* const> results, const Mesh& mesh);

// Whether every tile of every tensor of the rule is contiguous in its whole dim: within a dim made
// of several factors one may be cut only where all factors before it are locally 1, and evenly.
// Without this the axes of a merged dim would name other elements than its factors do.
bool Representable(const FactorRule& rule, const FactorAxes& axes, const Mesh& mesh);

// The sharding of a tensor whose dims are made of `factors`, each cut over its axes.
Sharding ShardingOf(const TensorFactors& factors, const FactorAxes& axes);

// As ShardingOf for result `r`, with a sum or maximum owed over the axes of contracted factors.
Sharding ResultSharding(const FactorRule& rule, const FactorAxes& axes, int r);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_FACTOR_RULE_H_
