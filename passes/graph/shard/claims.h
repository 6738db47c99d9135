// Which axis serves which factor of an op (the rule "claims" of docs/derivation.md): operands claim
// in a fixed order, a dim's axes major to minor, stopping at the first refusal. Where dims merge, a
// minor factor is refused until every factor before it is down to one element: otherwise the tiles
// of the merged dim would not be runs of it.

#ifndef MGC_PASSES_GRAPH_SHARD_CLAIMS_H_
#define MGC_PASSES_GRAPH_SHARD_CLAIMS_H_

#include <vector>

#include "graph/types/axis.h"
#include "graph/types/factor_rule.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"

namespace mgc {

class Claims {
 public:
  Claims(const FactorRule& rule, const Mesh& mesh)
      : rule_(rule), mesh_(mesh), axes_(rule.factors.size()), closed_(rule.factors.size(), false) {}

  // Axes that may serve no factor: sums over them are owed by an operand and stay so.
  void Block(AxisSet axes) { blocked_ |= axes; }

  // Lets a tensor made of `factors` claim the axes that cut it.
  void Claim(const TensorFactors& factors, const Sharding& sharding);
  // As Claim, and closes the factors of dims the tensor holds whole to later claims.
  void ClaimClosed(const TensorFactors& factors, const Sharding& sharding);

  const FactorAxes& axes() const { return axes_; }

 private:
  void ClaimDim(const DimFactors& dim, const AxisList& wanted);
  bool MayAppend(int factor, AxisId axis) const;
  bool Serves(AxisId axis) const;

  const FactorRule& rule_;
  const Mesh& mesh_;
  FactorAxes axes_;
  std::vector<bool> closed_;
  AxisSet blocked_;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_CLAIMS_H_
