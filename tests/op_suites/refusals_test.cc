// What ops refuse, one line a label; and what inference makes of names.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

using Ints = std::vector<int64_t>;

absl::StatusOr<std::vector<TensorType>> Infer(const std::string& op, const std::string& operands,
                                              const Attrs& attrs) {
  const std::vector<CaseOperand> parsed = ParseCaseOperands(operands).value();
  std::vector<const TensorType*> types;
  types.reserve(parsed.size());
  for (const CaseOperand& operand : parsed) types.push_back(&operand.type);
  return InferTypes(*FindOp(op), attrs, types);
}

struct Refusal {
  std::string label;
  std::string op;
  std::string operands;
  Attrs attrs;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.label << ": " << refusal.op << "(" << refusal.operands << ")";
}

Attrs Spec(std::string text) { return {{"spec", std::move(text)}}; }

Attrs BroadcastTo(Ints dims, Ints sizes, std::string names) {
  return {{"dims", std::move(dims)}, {"sizes", std::move(sizes)}, {"names", std::move(names)}};
}

Attrs With(Attrs attrs, const std::string& name, AttrValue value) {
  attrs.Set(name, std::move(value));
  return attrs;
}

Attrs ReshapeTo(Ints sizes, std::string names) {
  return {{"sizes", std::move(sizes)}, {"names", std::move(names)}};
}

Attrs Range(int64_t dim, int64_t begin, int64_t end) {
  return {{"dim", dim}, {"begin", begin}, {"end", end}};
}

Attrs Llama3(double factor, double low, double high) {
  return {{"theta", 1e4}, {"factor", factor}, {"low", low}, {"high", high}, {"original", 64.0}};
}

Attrs Buckets(int64_t buckets, int64_t farthest, int64_t causal) {
  return {{"buckets", buckets}, {"farthest", farthest}, {"causal", causal}};
}

std::vector<Refusal> GeneralRefusals() {
  return {
      {"sub_a0", "sub", "f32[2]", {}},
      {"stack_c1", "stack", "", {}},
      {"add_a0", "add", "", {}},
      {"scale_a1", "scale", "f32[2]", {}},
      {"scale_a2", "scale", "f32[2]", {{"value", int64_t{1}}}},
      {"scale_a3", "scale", "f32[2]", {{"value", 1.0}, {"valeu", 1.0}}},
      {"sub_t1", "sub", "f32[2], f64[2]", {}},
      {"sub_t1", "sub", "i64[2], i64[2]", {}},
      {"lookup_t1", "lookup", "f32[4,2], f32[3]", {}},
      {"lookup_t1", "lookup", "i64[4,2], i64[3]", {}},
      {"concat_t1", "concat", "f32[2], i64[2]", {{"dim", int64_t{0}}}},
      {"sub_c0", "sub", "f32[2], f32[3]", {}},
      {"layer_norm_c0", "layer_norm", "f32[2,3], f32[2], f32[3]", {{"eps", 1e-5}}},
      {"attention_c0",
       "attention",
       "f32[1,2,3,4], f32[1,2,2,4], f32[1,2,2,4], i64[2], i64[2]",
       {{"scale", 1.0}, {"p", 0.0}, {"key", ""}}},
  };
}

// Of element types.
std::vector<Refusal> TypeRefusals() {
  return {
      {"matmul_t1", "matmul", "bf16[2,3], f32[3,2]", {{"spec", "m k, k n -> m n"}}},
      {"layer_norm_t1", "layer_norm", "bf16[2,3], bf16[3], f32[3]", {{"eps", 0.1}}},
      {"matmul_t2",
       "matmul",
       "f32[2,3], f32[3,2]",
       {{"spec", "m k, k n -> m n"}, {"dtype", "bf16"}}},
      {"matmul_accumulate_c5",
       "matmul_accumulate",
       "f32[2,2], bf16[3,2], bf16[3,2]",
       {{"spec", "k m, k n -> m n"}}},
      {"matmul_bias_c1", "matmul_bias", "f32[2], f32[2], f32[]", {{"spec", "a, a"}}},
      {"matmul_bias_c5", "matmul_bias", "f32[2], f32[2], f32[1]", {{"spec", "a, a -> "}}},
      {"scaled_matmul_c1", "scaled_matmul", "f32[2], i8[2], f32[]", {{"spec", "a, a"}}},
      {"scaled_matmul_c5",
       "scaled_matmul",
       "f32[2,3], i8[3,4], f32[]",
       {{"spec", "m k, k n -> m n"}}},
      {"scaled_matmul_c5",
       "scaled_matmul",
       "f32[2,3], i8[3,4], f32[2]",
       {{"spec", "m k, k n -> n m"}}},
      {"scaled_matmul_t1",
       "scaled_matmul",
       "f32[2,3], f32[3,4], f32[4]",
       {{"spec", "m k, k n -> m n"}}},
      {"add_t1", "add", "i8[2], i8[2]", {}},
      {"cast_c1", "cast", "f32[2]", {{"dtype", "i64"}}},
      {"spectral_scale_c1", "spectral_scale", "f32[2,3]", {{"row_dims", int64_t{2}}}},
  };
}

std::vector<Refusal> OwnRefusals() {
  return {
      {"add_c1", "add", "f32[3], f32[2,3]", {}},
      {"add_c2", "add", "f32[3], f64[]", {}},
      {"mul_c1", "mul", "f32[3], f32[2,3]", {}},
      {"bias_gelu_c1", "bias_gelu", "f32[3], f32[2,3]", {}},
      {"bias_gelu_grad_c1", "bias_gelu_grad", "f32[3], f32[3], f32[2,3]", {}},
      {"dropout_c1", "dropout", "f32[3]", {{"p", 1.0}, {"key", ""}}},
      {"dropout_c1", "dropout", "f32[3]", {{"p", -0.1}, {"key", ""}}},
      {"reduce_sum_c1", "reduce_sum", "f32[3]", {{"dims", Ints{1}}}},
      {"reduce_sum_c1", "reduce_sum", "f32[3,2]", {{"dims", Ints{1, 0}}}},
      {"reduce_max_c1", "reduce_max", "f32[3]", {{"dims", Ints{-1}}}},
      {"broadcast_c1", "broadcast", "f32[3]", BroadcastTo({2}, {4}, "_")},
      {"broadcast_c2", "broadcast", "f32[3]", BroadcastTo({0}, {4}, "")},
      {"broadcast_c2", "broadcast", "f32[3]", BroadcastTo({0}, {4, 5}, "_")},
      {"broadcast_c3", "broadcast", "f32[3]", BroadcastTo({0}, {0}, "_")},
      {"broadcast_c3", "broadcast", "f32[3]",
       With(BroadcastTo({0}, {4}, "_"), "multiples", Ints{0})},
      {"broadcast_c4", "broadcast", "f32[3]", With(BroadcastTo({0}, {4}, "_"), "dtype", "i64")},
      {"stack_c2", "stack", "f64[], f64[1]", {}},
      {"reshape_c1", "reshape", "f32[6]", ReshapeTo({2, 3}, "_")},
      {"reshape_c2", "reshape", "f32[6]", ReshapeTo({2, 4}, "_ _")},
      {"reshape_c2", "reshape", "f32[6]", ReshapeTo({2, 2}, "_ _")},
      {"reshape_c3", "reshape", "f32[6]", ReshapeTo({-6}, "_")},
      {"reshape_c4", "reshape", "f32[vocab=6%4]", ReshapeTo({2, 3}, "_ _")},
      {"transpose_c1", "transpose", "f32[2,3]", {{"perm", Ints{0, 0}}}},
      {"transpose_c1", "transpose", "f32[2,3]", {{"perm", Ints{0}}}},
      {"slice_c1", "slice", "f32[4]", Range(1, 0, 1)},
      {"slice_c2", "slice", "f32[4]", Range(0, 2, 5)},
      {"slice_c2", "slice", "f32[4]", Range(0, 2, 2)},
      {"slice_c3", "slice", "f32[vocab=4%3]", Range(0, 0, 2)},
      {"concat_c1", "concat", "", {{"dim", int64_t{0}}}},
      {"concat_c2", "concat", "f32[2], f32[2,3]", {{"dim", int64_t{0}}}},
      {"concat_c3", "concat", "f32[vocab=4%3]", {{"dim", int64_t{0}}}},
      {"iota_c1", "iota", "", {{"size", int64_t{0}}, {"name", ""}}},
      {"layer_norm_c1", "layer_norm", "f32[3], f32[3], f32[3]", {{"eps", -1.0}}},
      {"rms_norm_c1", "rms_norm", "f32[3], f32[3]", {{"eps", -1.0}}},
      {"matmul_c1", "matmul", "f32[2], f32[2]", Spec("a, a")},
      {"matmul_c1", "matmul", "f32[2], f32[2]", Spec("a -> a")},
      {"matmul_c2", "matmul", "f32[2], f32[2]", Spec("a!, a! -> ")},
      {"matmul_c2", "matmul", "f32[2], f32[2]", Spec("..., ... -> ")},
      {"matmul_c3", "matmul", "f32[2,2], f32[2]", Spec("a a, a -> ")},
      {"matmul_c4", "matmul", "f32[2,3], f32[2]", Spec("a b, a -> ")},
      {"matmul_c0", "matmul", "f32[2,3], f32[2]", Spec("a b, b -> a")},
      {"matmul_accumulate_c1", "matmul_accumulate", "f32[], f32[2], f32[2]", Spec("")},
      {"attention_c1",
       "attention",
       "f32[1,2,2,4], f32[1,2,2,4], f32[1,2,2,4], i64[2], i64[2]",
       {{"scale", 1.0}, {"p", 1.5}, {"key", ""}}},
      {"attention_c3",
       "attention",
       "f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1], i64[1]",
       {{"scale", 1.0}, {"p", 0.0}, {"key", ""}, {"window", int64_t{0}}}},
      {"attention_c4",
       "attention",
       "f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1], i64[1]",
       {{"scale", 1.0}, {"p", 0.0}, {"key", ""}, {"cap", 0.0}}},
      {"attention_c5",
       "attention",
       "f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1], i64[1]",
       {{"scale", 1.0}, {"p", 0.0}, {"key", ""}, {"window", int64_t{1}}, {"causal", int64_t{0}}}},
      {"segment_attention_c1",
       "segment_attention",
       "f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1], i64[1], i64[1,1], i64[1,1]",
       {{"scale", 1.0}, {"p", 1.0}, {"key", ""}}},
      {"causal_mask_c1", "causal_mask", "i64[2,1], i64[2]", {}},
      {"relative_bucket_c1", "relative_bucket", "i64[2], i64[2,1]", Buckets(8, 20, 0)},
      {"relative_bucket_c2", "relative_bucket", "i64[2], i64[2]", Buckets(6, 20, 0)},
      {"relative_bucket_c2", "relative_bucket", "i64[2], i64[2]", Buckets(3, 20, 1)},
      {"relative_bucket_c3", "relative_bucket", "i64[2], i64[2]", Buckets(8, 2, 0)},
      {"soft_cap_c1", "soft_cap", "f32[1]", {{"cap", -1.0}}},
      {"rope_c6", "rope", "f32[1,1,1,4], i64[1]", {{"theta", 1e4}, {"dims", int64_t{3}}}},
      {"rope_c1", "rope", "f32[1,1,1,3], i64[1]", {{"theta", 1e4}}},
      {"rope_c2", "rope", "f32[1,1,1,2], i64[1]", {{"theta", 0.0}}},
      {"rope_c3", "rope", "f32[1,1,1,2], i64[1]", Llama3(0.0, 1.0, 4.0)},
      {"rope_c4", "rope", "f32[1,1,1,2], i64[1]", {{"theta", 1e4}, {"low", 1.0}}},
      {"rope_c5", "rope", "f32[1,1,1,2], i64[1]", Llama3(8.0, 4.0, 4.0)},
  };
}

// Gradients that ops refuse to make, of the result `seeded`.
struct GradientRefusal {
  std::string label;
  std::string op;
  std::string operands;
  Attrs attrs;
  size_t seeded = 0;
};

std::vector<GradientRefusal> GradientRefusals() {
  const Attrs attention = {{"scale", 1.0}, {"p", 0.0}, {"key", ""}};
  return {
      {"attention_c2", "attention", "f32[1,2,2,4], f32[1,2,2,4], f32[1,2,2,4], i64[2], i64[2]",
       attention, 1},
      {"layer_norm_c2", "layer_norm", "f32[2,3], f32[3], f32[3]", {{"eps", 1e-5}}, 1},
      {"layer_norm_c2", "layer_norm", "f32[2,3], f32[3], f32[3]", {{"eps", 1e-5}}, 2},
      {"rms_norm_c2", "rms_norm", "f32[2,3], f32[3]", {{"eps", 1e-5}}, 1},
      {"broadcast_c5", "broadcast", "f32[3]", With(BroadcastTo({0}, {4}, "_"), "dtype", "f64"), 0},
  };
}

// One node, of whose results one has a gradient. Values: operands, results, that gradient.
class OneSeed : public GradContext {
 public:
  OneSeed(const GradientRefusal& refusal, const std::vector<CaseOperand>& operands,
          const std::vector<TensorType>& results)
      : refusal_(refusal), num_inputs_(operands.size()) {
    for (const CaseOperand& operand : operands) types_.push_back(operand.type);
    types_.insert(types_.end(), results.begin(), results.end());
    types_.push_back(results[refusal.seeded]);
  }

  const Attrs& attrs() const override { return refusal_.attrs; }
  int num_inputs() const override { return static_cast<int>(num_inputs_); }
  ValueId input(int i) const override { return i; }
  ValueId output(int i) const override { return static_cast<ValueId>(num_inputs_) + i; }
  ValueId output_grad(int i) const override {
    if (static_cast<size_t>(i) != refusal_.seeded) return kNone;
    return static_cast<ValueId>(types_.size()) - 1;
  }
  const TensorType& type(ValueId value) const override {
    return types_[static_cast<size_t>(value)];
  }
  bool wants(int i) const override { return type(i).dtype != DType::kI64; }
  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> /*inputs*/,
                               Attrs /*attrs*/) override {
    ADD_FAILURE() << "emits " << op;
    return {kNone, kNone, kNone};
  }
  void Add(int i, ValueId /*gradient*/) override { ADD_FAILURE() << "adds to operand " << i; }

 private:
  const GradientRefusal& refusal_;
  const size_t num_inputs_;
  std::vector<TensorType> types_;
};

TEST(GradientRefusalTest, NamesTheLabel) {
  for (const GradientRefusal& refusal : GradientRefusals()) {
    SCOPED_TRACE(refusal.label);
    const auto results = Infer(refusal.op, refusal.operands, refusal.attrs);
    ASSERT_TRUE(results.ok()) << results.status();
    OneSeed context(refusal, ParseCaseOperands(refusal.operands).value(), *results);
    const absl::Status status = FindOp(refusal.op)->grad(context);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::EndsWith(status.message(), absl::StrCat("[", refusal.label, "]"))) << status;
  }
}

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, NamesTheOpAndTheLabel) {
  const Refusal& refusal = GetParam();
  const absl::Status status = Infer(refusal.op, refusal.operands, refusal.attrs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), refusal.op)) << status;
  EXPECT_TRUE(absl::EndsWith(status.message(), absl::StrCat("[", refusal.label, "]"))) << status;
}

std::string RefusalName(const testing::TestParamInfo<Refusal>& info) {
  return absl::StrCat(info.param.label, "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(General, RefusalTest, testing::ValuesIn(GeneralRefusals()), RefusalName);
INSTANTIATE_TEST_SUITE_P(Types, RefusalTest, testing::ValuesIn(TypeRefusals()), RefusalName);
INSTANTIATE_TEST_SUITE_P(Own, RefusalTest, testing::ValuesIn(OwnRefusals()), RefusalName);

std::string TypeText(const std::string& op, const std::string& operands, const Attrs& attrs,
                     size_t result = 0) {
  return Infer(op, operands, attrs).value()[result].ToString();
}

TEST(InferenceTest, NamesFlowThroughFactors) {
  EXPECT_EQ(TypeText("matmul", "f32[batch=2,seq=3,embed=4], f32[embed=4,heads=2,head_dim=5]",
                     Spec("b s e, e h d -> b s h d")),
            "f32[batch=2,seq=3,heads=2,head_dim=5]");
  EXPECT_EQ(
      TypeText("matmul", "f32[batch=2,embed=4], f32[vocab=9%4,embed=4]", Spec("b e, v e -> b v")),
      "f32[batch=2,vocab=9%4]");
  EXPECT_EQ(TypeText("lookup", "f32[vocab=9%4,embed=4], i64[batch=2,seq=3]", {}),
            "f32[batch=2,seq=3,embed=4]");
  EXPECT_EQ(TypeText("lookup_grad", "f32[vocab=9%4,embed=4], i64[2,3], f32[2,3,4]", {}),
            "f32[vocab=9%4,embed=4]");
  EXPECT_EQ(TypeText("pick", "f32[batch=2,vocab=9%4], i64[batch=2]", {}), "f32[batch=2]");
  EXPECT_EQ(TypeText("layer_norm", "f32[batch=2,embed=4], f32[embed=4], f32[embed=4]",
                     {{"eps", 1e-5}}, 1),
            "f32[batch=2]");
}

TEST(InferenceTest, GroupedDimsKeepTheirNames) {
  const std::string operands =
      "f32[batch=1,seq=2,heads=4,head_dim=3], f32[batch=1,seq=2,kv_heads=2,head_dim=3], "
      "f32[batch=1,seq=2,kv_heads=2,head_dim=3], i64[seq=2], i64[seq=2]";
  const Attrs attrs = {{"scale", 1.0}, {"p", 0.0}, {"key", ""}};
  EXPECT_EQ(TypeText("attention", operands, attrs, 0), "f32[batch=1,seq=2,heads=4,head_dim=3]");
  EXPECT_EQ(TypeText("attention", operands, attrs, 1), "f32[batch=1,heads=4,seq=2]");
}

TEST(InferenceTest, MovementNamesItsDims) {
  EXPECT_EQ(TypeText("reshape", "f32[batch=2,6]", ReshapeTo({2, 3, 2}, "batch heads _")),
            "f32[batch=2,heads=3,2]");
  EXPECT_EQ(TypeText("reshape", "f32[2,1,vocab=5%2]", ReshapeTo({2, 5}, "_ vocab")),
            "f32[2,vocab=5%2]");
  EXPECT_EQ(TypeText("broadcast", "f32[seq=3]",
                     With(BroadcastTo({0, 2}, {2, 5}, "batch vocab"), "multiples", Ints{1, 4})),
            "f32[batch=2,seq=3,vocab=5%4]");
  EXPECT_EQ(TypeText("transpose", "f32[a=2,b=3]", {{"perm", Ints{1, 0}}}), "f32[b=3,a=2]");
  EXPECT_EQ(TypeText("slice", "i64[seq=4]", Range(0, 1, 4)), "i64[seq=3]");
  EXPECT_EQ(TypeText("concat", "f32[a=2,b=3], f32[a=2,b=4]", {{"dim", int64_t{1}}}),
            "f32[a=2,b=7]");
  EXPECT_EQ(TypeText("iota", "", {{"size", int64_t{4}}, {"name", "seq"}}), "i64[seq=4]");
}

TEST(InferenceTest, SumsOverEverythingAreF64) {
  EXPECT_EQ(TypeText("total", "f32[2,3]", {}), "f64[]");
  EXPECT_EQ(TypeText("weighted_sum", "f32[2], f32[2]", {}), "f64[]");
  EXPECT_EQ(TypeText("stack", "f64[], f64[]", {}), "f64[2]");
  EXPECT_EQ(TypeText("mul", "f32[2], f64[]", {}), "f32[2]");
}

}  // namespace
}  // namespace mgc
