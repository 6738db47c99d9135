// The op table: one registration per op, and nothing about an op anywhere else.
//
// An OpDef says what an op takes and makes (attributes, type inference), how it may be sharded
// (factor rule), its gradient, its cost, its meaning (reference evaluation) and example cases, from
// which its tests are derived (tests/op_suites). Ops live in graph/ops/<family>.cc and are listed
// in graph/ops/all_ops.cc. Fast kernels are found by op name and checked against the meaning.

#ifndef MGC_GRAPH_IR_OP_H_
#define MGC_GRAPH_IR_OP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/eval/models/op_eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/graph.h"
#include "graph/types/attrs.h"
#include "graph/types/factor_rule.h"
#include "graph/types/machine.h"
#include "graph/types/tensor_type.h"

namespace mgc {

enum class AttrKind : uint8_t { kInt, kReal, kText, kInts };

struct AttrSpec {
  std::string name;
  AttrKind kind;
  bool required = true;
};

// One use of an op, as its functions see it.
struct OpUse {
  const Attrs& attrs;
  absl::Span<const TensorType* const> operands;
  absl::Span<const TensorType* const> results;  // empty during inference
};

// In which operands the results are linear: in each one with the others fixed (mul, matmul), or in
// all of them together (add). Sums may stay owed through linear operands only. An operand of a
// jointly linear op that lacks a contracted factor (matmul_accumulate's acc) is owed over that
// factor's axes: whole, it would be counted by every rank.
enum class Linearity : uint8_t { kNone, kSeparate, kJoint };

// What passes treat in a way of its own. They ask for roles and never for names; an op without
// roles is computed where its rule says.
enum class OpRole : uint8_t {
  // The sum of all operands, in any grouping; operands after the first may lack leading dims.
  kSum,
  // Operand 1, what one micro-batch contributes, joins operand 0, a sum that lives on.
  kCollect,
  // Operands lie side by side in the result: they are written there, and nothing is computed.
  kPack,
  // The operand in another sharding, which partition spells out.
  kReshard,
  // Draws random numbers by the attributes kDropAttr (a probability; 0: none are drawn) and
  // kRandomKeyAttr.
  kRandom,
  // Keeps much for its gradient that costs little to compute: selective recomputation does.
  kRecompute,
  // Elements [kBeginAttr, kEndAttr) of the operand's dim kDimAttr, attributes that say so.
  kRange,
  // The operand in another element type, kDTypeAttr.
  kCast,
};

// Whether a use is computed in a narrower type than f32 where a model is trained in one
// (passes/graph/narrow.h).
enum class Precision : uint8_t {
  kFollows,       // as its operands are
  kNarrow,        // begins there: products
  kNarrowResult,  // its results are rounded: a lookup reads less than its table holds
  kWide,          // never: losses, sums that live on, the optimizer
};

inline constexpr char kDropAttr[] = "p";
inline constexpr char kRandomKeyAttr[] = "key";
inline constexpr char kDTypeAttr[] = "dtype";
inline constexpr char kDimAttr[] = "dim";
inline constexpr char kBeginAttr[] = "begin";
inline constexpr char kEndAttr[] = "end";

// A use of an op, to be said in other ops.
class EmitContext {
 public:
  virtual ~EmitContext() = default;
  virtual const Attrs& attrs() const = 0;
  virtual int num_inputs() const = 0;
  virtual ValueId input(int i) const = 0;
  virtual std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                                       Attrs attrs = {}) = 0;
  ValueId Emit(absl::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return EmitAll(op, std::move(inputs), std::move(attrs))[0];
  }
};

// What a gradient rule may do. Implemented by passes/differentiate.
class GradContext : public EmitContext {
 public:
  virtual ValueId output(int i) const = 0;
  // Gradient of the loss with respect to output i, or kNone when it has none.
  virtual ValueId output_grad(int i) const = 0;
  // Valid until the next Emit.
  virtual const TensorType& type(ValueId value) const = 0;
  // Whether anything upstream of input i is trained.
  virtual bool wants(int i) const = 0;
  // Adds a contribution to the gradient of input i; of the input's type.
  virtual void Add(int i, ValueId gradient) = 0;
};

// An example use, from which tests of evaluation, gradient, sharding and kernels are derived.
struct OpCase {
  // Operand types, e.g. `f32[2,3], i64[4]<3`: `<n` bounds an index operand to [0, n).
  std::string operands;
  Attrs attrs = {};
  // Real operands are drawn from [low, high).
  double low = -1.0;
  double high = 1.0;
  // Error a kernel in f32 may make against the reference, relative to the largest entry of a
  // result.
  double tolerance = 1e-5;
};

struct InPlace {
  int result = 0;
  int operand = 0;
};

struct OpDef {
  std::string name;
  std::string doc;  // one sentence
  // Names, for messages and for who looks an operand up; a last one ending in `...` repeats.
  std::vector<std::string> operands;
  std::vector<std::string> results;
  std::vector<AttrSpec> attrs;
  std::vector<OpRole> roles;
  bool Has(OpRole role) const;

  // The attributes for results of other sizes or names of dims, where attributes state them; else
  // null.
  std::function<Attrs(const Attrs&, absl::Span<const TensorType* const> results)> resized;

  // The attributes of a use that has two dims in the place of `factor`, the first of them new: its
  // rows in runs. Null: uses whose attributes name no factors, or must not be cut.
  std::function<Attrs(const Attrs&, absl::string_view factor)> with_major;

  // Operands that hold indices (i64). All others are real and share one element type, which is not
  // i8, unless they are scalars of f64.
  std::vector<int> index_operands;
  // Real operands and results that are of f32 where the shared type is narrower: statistics, sums,
  // parameters of norms (WideOf).
  std::vector<int> wide_operands;
  std::vector<int> wide_results;
  // Real operands that are of i8, whatever type the others share: quantized weights.
  std::vector<int> quantized_operands;
  Precision precision = Precision::kFollows;
  // Instead: operands of any element type, all of the same.
  bool any_dtype = false;
  // Operands of which only the type counts: their elements are never read.
  std::vector<int> type_operands;
  // Refuses what neither types nor rule can; may be null. Runs before `rule_of` and `infer`, which
  // may rely on it. Its errors carry labels `<op>_c1`, `<op>_c2`, ... .
  std::function<absl::Status(const OpUse&)> check;

  // The factor rule's text (graph/types/factor_rule.h); `rule_of` where it depends on the use.
  std::string rule;
  std::function<std::string(const OpUse&)> rule_of;
  RuleText parsed_rule;  // `rule`; set when the table is built

  // Types of the results. Without it, the rule must determine them: every factor of a result is in
  // an operand; element types are the shared one, or wide. Where the op has the attribute
  // kDTypeAttr, a use may ask for a wide result.
  std::function<absl::Status(const OpUse&, std::vector<TensorType>*)> infer;

  Linearity linearity = Linearity::kNone;
  std::vector<int> linear_operands;  // empty: all
  // Of a jointly linear op whose result is a sum of products: the operands of each product. An
  // operand of each together make a set in which it is linear. Empty: products of one operand.
  std::vector<std::vector<int>> linear_terms = {};

  // Factors whose place in the whole dim the meaning needs (a lookup's vocabulary, dropout's
  // index); `...` stands for every factor of the run.
  std::vector<std::string> offset_factors;

  // Null: no gradient flows through, and `no_grad` says why. Indices never have one.
  std::function<absl::Status(GradContext&)> grad;
  std::string no_grad;
  // Real operands that no gradient reaches, though the results depend on them (a softmax' shift).
  std::vector<int> stopped_operands;
  // The last so many results are statistics kept for the gradient; none enters through them.
  int saved_results = 0;
  // Whether a use with these attributes changes nothing: its result is operand 0, of the same type.
  // Null: never. Where no gradient flows through, that holds behind differentiation only.
  std::function<bool(const Attrs&)> identity;

  double flops_per_point = 1;  // times the product of all factors
  // What one rank's kernel does, where it depends on more than sizes: floating-point operations in
  // the place of `flops_per_point`, and bytes read and written in the place of all operands (those
  // of which only the type counts apart) and results. Null: as said. The use has local types, as
  // `workspace` has; where ranks differ, the numbers are those of the one with most to do.
  std::function<double(const OpUse&)> flops;
  std::function<double(const OpUse&)> bytes;
  // Bytes of scratch that a kernel may use: of a processor for each of its threads, of a GPU for
  // all of them; null: none. The use has *local* types: operands and results are the tiles of one
  // rank, padding included, a tile stored in pieces being one flat dim. Plans make room for it
  // (Segment::workspace_bytes), and a kernel that asks for more is refused at load. Defined for
  // every use that passes inference.
  std::function<int64_t(const OpUse&)> workspace;
  std::function<int64_t(const OpUse&)> gpu_workspace;

  // Results that may take the place of an operand of the same size: a kernel, or an exchange, has
  // read what it still needs of it. All other results are apart from all operands. Of a collective,
  // which serves many tensors at once, {0, 0} stands for result i and operand i. The
  // plan's memory follows: a gradient's sum, mean and reduction share one place as far as their ops
  // allow it.
  std::vector<InPlace> in_place = {};

  OpEval eval;  // the meaning; collectives have theirs in graph/eval/eval.cc
  // Of a fused op, the small ops that it stands for: emits them and returns one value for each
  // result, saved ones included. It hands attributes on and decides nothing by them, so that the
  // fuse pass can look for what it emits.
  std::function<std::vector<ValueId>(EmitContext&)> expand;
  // Whether the fuse pass puts this use of a fused op where it finds the expansion; null: never,
  // models and gradient rules say the op themselves.
  std::function<bool(const OpUse&)> replaces_expansion;

  std::vector<OpCase> cases;

  // True for ops that move data between ranks.
  bool collective = false;
};

// All ops, sorted by name. Built once, immutable.
const std::vector<OpDef>& AllOps();
// Null when there is no such op.
const OpDef* FindOp(absl::string_view name);

// Whether a result may stand exactly where an operand of the same size does (OpDef::in_place).
bool MayTakePlace(const OpDef& op, size_t result, size_t operand);
// The first operand whose place `result` of the op may take (OpDef::in_place), or -1.
int OperandInPlace(const OpDef& op, int result);

// Whether a use makes its operand a constant to the derivative: stop_gradient does.
bool StopsGradient(const Node& node);

// Whether operand or result `i` is of f32 where the shared type is narrower (OpDef::wide_operands).
bool IsWideOperand(const OpDef& op, size_t i);
bool IsWideResult(const OpDef& op, size_t i);
// Whether operand `i` is of i8 (OpDef::quantized_operands).
bool IsQuantizedOperand(const OpDef& op, size_t i);

// OpDef::workspace of the host's kernels, 0 where there is none.
int64_t WorkspaceOf(const OpDef& op, const OpUse& use, KernelHost host);

// Whether uses of the op may ask for results of f32 where operands are narrower (kDTypeAttr).
bool MayAskForWide(const OpDef& op);

// The rule of one use, bound to its types.
absl::StatusOr<FactorRule> RuleOf(const OpDef& op, const OpUse& use);
// The rule of a node; nodes of a graph have passed inference, so this cannot fail.
FactorRule RuleOf(const Graph& graph, const Node& node);

// Checks operands and attributes, then infers. Errors carry labels: `<op>_a0` number of operands,
// `_a1` missing, `_a2` mistyped, `_a3` unknown attribute, `_a4` a number that is not finite, `_t1`
// element type of an operand, `_t2` of a result that is asked for, `_c0` the factor rule, `_c1`,
// ... what the op itself refuses.
absl::StatusOr<std::vector<TensorType>> InferTypes(const OpDef& op, const Attrs& attrs,
                                                   absl::Span<const TensorType* const> operands);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_OP_H_
