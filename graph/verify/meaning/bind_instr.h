// What of a shrunk plan's instructions stays the same each time they run: rules, pieces, shapes.

#ifndef MGC_GRAPH_VERIFY_MEANING_BIND_INSTR_H_
#define MGC_GRAPH_VERIFY_MEANING_BIND_INSTR_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/plan/plan.h"
#include "graph/plan/step_walk.h"
#include "graph/types/factor_rule.h"

namespace mgc {

struct BoundInstr {
  FactorRule rule;
  std::vector<std::vector<DimPiece>> pieces;  // by rank of a class, then by factor
  std::vector<int> batch_factors;             // those whose place depends on the micro-batch
  std::vector<std::vector<int64_t>> shapes;   // of results
  std::vector<bool> is_index;
  bool names_layer = false;  // an attribute holds `*`
};

class BoundInstrs {
 public:
  // `plan` is a shrunk plan (shrink.h) and must outlive this.
  explicit BoundInstrs(const Plan& plan) : plan_(plan), ranks_(RanksOfClass(plan, 0)) {}

  // Of a compute instruction that is no collective.
  const BoundInstr& Of(const InstrSite& site);
  // The instruction's attributes with the call's layer for `*`.
  Attrs AttrsFor(const InstrSite& site) const;

 private:
  BoundInstr Bind(const Segment& segment, const Instr& instr) const;

  const Plan& plan_;
  const std::vector<int64_t> ranks_;
  absl::flat_hash_map<const Instr*, BoundInstr> bound_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_BIND_INSTR_H_
