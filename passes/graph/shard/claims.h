// Which axis serves which factor of an op (the rule "claims" of docs/derivation.md): operands claim
// in a fixed order, a dim's axes major to minor, stopping at the first refusal. Where dims merge, a
// minor factor is refused until every factor before it is down to one element: otherwise the tiles
// of the merged dim would not be runs of it.

#ifndef MGC_PASSES_GRAPH_SHARD_CLAIMS_H_
#define MGC_PASSES_GRAPH_SHARD_CLAIMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "graph/types/axis.h"
#include "graph/types/factor_rule.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"

namespace mgc {

// Why an axis may not serve a factor.
enum class ClaimRefusal : uint8_t {
  kWhole,      // the op needs the factor whole
  kClosed,     // a weight whose gradient is made holds it whole
  kCarried,    // a sum over the axis is carried through the op
  kServes,     // the axis serves another factor already
  kOtherwise,  // the factor is cut otherwise already
  kTooSmall,   // of one element
  kUnequal,    // a merged dim would not be cut into runs
};

// A factor and an axis that serves it, and who claimed that.
struct TakenClaim {
  int factor = -1;
  AxisId axis = 0;
  int who = -1;
};

// An axis that a dim of `who` lost, with all that are minor to it.
struct RefusedClaim {
  int dim = -1;
  AxisId axis = 0;
  ClaimRefusal why = ClaimRefusal::kServes;
  int who = -1;
  int holder = -1;  // kServes, kOtherwise: who claimed before
};

class Claims {
 public:
  Claims(const FactorRule& rule, const Mesh& mesh)
      : rule_(rule), mesh_(mesh), axes_(rule.factors.size()), closed_(rule.factors.size(), false) {}

  // Axes that may serve no factor: sums over them are owed by an operand and stay so.
  void Block(AxisSet axes) { blocked_ |= axes; }

  // Lets a tensor made of `factors` claim the axes that cut it; `who` is how the caller calls it.
  void Claim(const TensorFactors& factors, const Sharding& sharding, int who = -1);
  // As Claim, and closes the factors of dims the tensor holds whole to later claims.
  void ClaimClosed(const TensorFactors& factors, const Sharding& sharding, int who = -1);

  const FactorAxes& axes() const { return axes_; }
  // In the order in which they were decided.
  const std::vector<TakenClaim>& taken() const { return taken_; }
  const std::vector<RefusedClaim>& refused() const { return refused_; }
  // Who claimed that the axis serves the factor; -1: nobody.
  int HolderOf(int factor, AxisId axis) const;

 private:
  void ClaimDim(const DimFactors& factors, const AxisList& wanted, int dim, int who);
  absl::optional<ClaimRefusal> Refuses(int factor, AxisId axis) const;
  bool Serves(AxisId axis) const;
  void Take(int factor, AxisId axis, int who);
  void Refuse(RefusedClaim refused);

  const FactorRule& rule_;
  const Mesh& mesh_;
  FactorAxes axes_;
  std::vector<bool> closed_;
  AxisSet blocked_;
  std::vector<TakenClaim> taken_;
  std::vector<RefusedClaim> refused_;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_CLAIMS_H_
