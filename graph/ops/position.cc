// Positions, and what attention from small ops makes of them: which keys a query sees, and how far
// apart they are (Raffel et al., arXiv 1910.10683, section 2.1).

#include <limits>

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"
#include "graph/ops/relative_bucket.h"

namespace mgc {
namespace {

struct EvalIota {
  template <class M>
  static void Run(EvalContext<M>& c) {
    for (size_t i = 0; i < c.out(0).index.size(); ++i) {
      c.out(0).index[i] = c.piece("n").begin + static_cast<int64_t>(i);
    }
  }
};

OpDef Iota() {
  OpDef op;
  op.name = "iota";
  op.precision = Precision::kWide;
  op.doc = "The positions 0 .. size - 1 of a dim.";
  op.results = {"y"};
  op.attrs = {{"size", AttrKind::kInt}, {"name", AttrKind::kText}};
  op.resized = [](const Attrs& attrs, absl::Span<const TensorType* const> results) {
    Attrs made = attrs;
    made.Set("size", results[0]->dims[0].size);
    made.Set("name", results[0]->dims[0].name);
    return made;
  };
  op.check = [](const OpUse& use) -> absl::Status {
    return use.attrs.Int("size") >= 1 ? absl::OkStatus()
                                      : Refuse("iota", 1, "size must be at least 1");
  };
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    const std::string name = use.attrs.Text("name");
    results->push_back({DType::kI64, {{use.attrs.Int("size"), name == "_" ? "" : name, 1}}});
    return absl::OkStatus();
  };
  op.rule = " -> n";
  op.offset_factors = {"n"};
  op.no_grad = "makes indices";
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalIota>();
  op.cases = {{"", {{"size", int64_t{6}}, {"name", "seq"}}},
              {"", {{"size", int64_t{1}}, {"name", ""}}}};
  return op;
}

struct EvalCausalMask {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const int64_t keys = c.out(0).dim(1);
    FillResult(c, [&](int64_t i) {
      const int64_t query = c.in(0).index[static_cast<size_t>(i / keys)];
      const int64_t key = c.in(1).index[static_cast<size_t>(i % keys)];
      return c.model.Indexed("causal", {}, {query, key}, [=] {
        return key <= query ? 0.0 : -std::numeric_limits<double>::infinity();
      });
    });
  }
};

OpDef CausalMask() {
  OpDef op;
  op.name = "causal_mask";
  op.precision = Precision::kWide;
  op.doc = "What is added to scores [..., s, t]: 0 where kpos <= qpos, else minus infinity.";
  op.operands = {"qpos", "kpos"};
  op.results = {"y"};
  op.index_operands = {0, 1};
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    results->push_back({DType::kF32, {use.operands[0]->dims[0], use.operands[1]->dims[0]}});
    return absl::OkStatus();
  };
  op.check = [](const OpUse& use) -> absl::Status {
    const bool vectors = use.operands[0]->ndim() == 1 && use.operands[1]->ndim() == 1;
    return vectors ? absl::OkStatus() : Refuse("causal_mask", 1, "positions are vectors");
  };
  op.rule = "s, t -> s t";
  op.no_grad = "depends on indices alone";
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalCausalMask>();
  op.cases = {{"i64[4]<5, i64[3]<5"}, {"i64[1]<2, i64[1]<2"}};
  return op;
}

// Keyed by the mask's element: a proof draws none that is 0, and tells any two apart.
struct EvalPaddingMask {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      const int64_t given = c.in(0).index[static_cast<size_t>(i)];
      return c.model.Indexed("padding", {}, {given}, [=] {
        return given != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
      });
    });
  }
};

OpDef PaddingMask() {
  OpDef op = OfEachIndex("mask", "y");
  op.name = "padding_mask";
  op.precision = Precision::kWide;
  op.doc = "What is added to scores, for each key: 0, and minus infinity where the mask is 0.";
  op.eval = EvalWith<EvalPaddingMask>();
  op.cases = {{"i64[2,3]<2"}, {"i64[4]<3"}};
  return op;
}

// Where sizes are small no distance is one that `farthest` decides on: there the bucket is one by
// attributes and positions.
struct EvalRelativeBucket {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const RelativeBuckets rule = {c.attrs.Int("buckets"), c.attrs.Int("farthest"),
                                  c.attrs.Int("causal") != 0};
    const double attrs[] = {static_cast<double>(rule.buckets), static_cast<double>(rule.farthest),
                            rule.causal ? 1.0 : 0.0};
    const int64_t keys = c.out(0).dim(1);
    for (int64_t i = 0; i < c.out(0).size(); ++i) {
      const int64_t query = c.in(0).index[static_cast<size_t>(i / keys)];
      const int64_t key = c.in(1).index[static_cast<size_t>(i % keys)];
      c.out(0).index[static_cast<size_t>(i)] =
          c.model.IndexBelow(rule.buckets, "bucket", attrs, {query, key},
                             [&] { return RelativeBucketOf(rule, query, key); });
    }
  }
};

absl::Status CheckRelativeBucket(const OpUse& use) {
  if (use.operands[0]->ndim() != 1 || use.operands[1]->ndim() != 1) {
    return Refuse("relative_bucket", 1, "positions are vectors");
  }
  const int64_t buckets = use.attrs.Int("buckets");
  const int64_t sides = use.attrs.Int("causal") != 0 ? 1 : 2;
  if (buckets < 2 * sides || buckets % (2 * sides) != 0) {
    return Refuse(
        "relative_bucket", 2,
        "half of each side's buckets are of one distance: their number must be a multiple "
        "of 2, or of 4 where keys may come later");
  }
  if (use.attrs.Int("farthest") <= buckets / sides / 2) {
    return Refuse("relative_bucket", 3, "farthest must lie beyond the buckets of one distance");
  }
  return absl::OkStatus();
}

OpDef RelativeBucket() {
  OpDef op;
  op.name = "relative_bucket";
  op.precision = Precision::kWide;
  op.doc =
      "The bucket of each distance from query to key, for a table of biases: half of a side's "
      "buckets hold one distance each, the others grow with it up to `farthest`, and what is "
      "beyond shares the last. With causal 0 keys that come later have the upper half; with 1 they "
      "count as distance 0.";
  op.operands = {"qpos", "kpos"};
  op.results = {"y"};
  op.attrs = {
      {"buckets", AttrKind::kInt}, {"farthest", AttrKind::kInt}, {"causal", AttrKind::kInt}};
  op.index_operands = {0, 1};
  op.check = CheckRelativeBucket;
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    results->push_back({DType::kI64, {use.operands[0]->dims[0], use.operands[1]->dims[0]}});
    return absl::OkStatus();
  };
  op.rule = "s, t -> s t";
  op.no_grad = "makes indices";
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalRelativeBucket>();
  const auto attrs = [](int64_t buckets, int64_t farthest, int64_t causal) {
    return Attrs{{"buckets", buckets}, {"farthest", farthest}, {"causal", causal}};
  };
  op.cases = {{"i64[6]<40, i64[7]<40", attrs(8, 20, 0)},
              {"i64[6]<40, i64[7]<40", attrs(8, 20, 1)},
              {"i64[1]<3, i64[1]<3", attrs(32, 128, 0)}};
  return op;
}

}  // namespace

std::vector<OpDef> PositionOps() { return {Iota(), CausalMask(), PaddingMask(), RelativeBucket()}; }

}  // namespace mgc
