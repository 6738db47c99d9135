// Example cases of ops made ready to run: operands parsed, drawn and evaluated, for the suites that
// derive tests from the op table (tests/op_suites) and for the conformance of kernels.

#ifndef MGC_GRAPH_EVAL_OP_CASE_H_
#define MGC_GRAPH_EVAL_OP_CASE_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/eval/evaluate_op.h"
#include "graph/eval/models/op_eval.h"
#include "graph/ir/op.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct CaseOperand {
  TensorType type;
  int64_t bound = 1;  // an index operand lies in [0, bound)
};

// Reads OpCase::operands: `f32[2,vocab=5%2], i64[4]<3`; the empty text is no operand.
absl::StatusOr<std::vector<CaseOperand>> ParseCaseOperands(absl::string_view text);

using RealTensor = HostTensor<double>;
using ResidueTensor = HostTensor<ResiduePair>;

// A case with the types and the rule that follow from it.
struct BoundCase {
  const OpDef* op = nullptr;
  const OpCase* op_case = nullptr;
  std::shared_ptr<const OpCase> owned_case = nullptr;  // where it is none of the op's own
  std::string name;                                    // `<op>_<number>`
  std::vector<CaseOperand> operands;
  std::vector<TensorType> results;
  FactorRule rule;

  std::vector<const TensorType*> OperandTypes() const;
};

// `op_case` outlives what is made.
absl::StatusOr<BoundCase> BindCase(const OpDef& op, const OpCase& op_case, std::string name);
absl::StatusOr<BoundCase> BindCase(const OpDef& op, size_t number);

// All cases of all ops that are no collectives, in the order of the table.
std::vector<BoundCase> AllCases();
// Those with f32 as the shared element type, with bf16 and with f16 in its place
// (OpDef::wide_operands stay), of ops that are computed in it (OpDef::precision). A result is
// rounded once: the tolerance grows by half a unit of its last place.
std::vector<BoundCase> NarrowCases();

// Whole operands of logical shape, drawn as the case says.
std::vector<RealTensor> DrawOperands(const BoundCase& bound, std::mt19937_64& random);
// The same with uniform residues in place of reals.
std::vector<ResidueTensor> DrawResidues(const BoundCase& bound, std::mt19937_64& random);
ResidueTensor DrawResidues(const TensorType& type, std::mt19937_64& random);

// EvaluateWhole in doubles.
inline std::vector<RealTensor> EvaluateWhole(const OpDef& op, const Attrs& attrs,
                                             const FactorRule& rule,
                                             const std::vector<TensorType>& results,
                                             const std::vector<const RealTensor*>& operands,
                                             uint64_t seed) {
  return EvaluateWhole(DoubleModel(), op, attrs, rule, results, operands, seed);
}

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_OP_CASE_H_
