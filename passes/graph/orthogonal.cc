#include "passes/graph/orthogonal.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/newton_schulz.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

// The products of a matrix whose dims have the factors `rows`, `columns`. Specs of matmul.
struct Products {
  std::string gram;        // of the shorter side, by itself
  std::string square;      // of the Gram matrix by itself
  std::string polynomial;  // of what is made of that, and the matrix
  bool gram_first = true;  // whether the Gram matrix stands left of the matrix
};

std::string Factors(const char* letter, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i > 0 ? " " : "", letter, i);
  return text;
}

Products ProductsOf(const TensorType& type, int row_dims) {
  int64_t rows = 1;
  int64_t columns = 1;
  for (int d = 0; d < type.ndim(); ++d) {
    (d < row_dims ? rows : columns) *= type.dims[static_cast<size_t>(d)].size;
  }
  const int column_dims = type.ndim() - row_dims;
  const std::string r = Factors("r", row_dims), c = Factors("c", column_dims);
  if (rows <= columns) {
    const std::string q = Factors("q", row_dims), p = Factors("p", row_dims);
    return {absl::StrCat(r, " ", c, ", ", q, " ", c, " -> ", r, " ", q),
            absl::StrCat(r, " ", q, ", ", q, " ", p, " -> ", r, " ", p),
            absl::StrCat(r, " ", q, ", ", q, " ", c, " -> ", r, " ", c), true};
  }
  const std::string q = Factors("q", column_dims), p = Factors("p", column_dims);
  return {absl::StrCat(r, " ", c, ", ", r, " ", q, " -> ", c, " ", q),
          absl::StrCat(c, " ", q, ", ", q, " ", p, " -> ", c, " ", p),
          absl::StrCat(r, " ", q, ", ", q, " ", c, " -> ", r, " ", c), false};
}

// Emits nodes of one parameter's update, each result by a name of its own.
class Emitter {
 public:
  Emitter(GraphBuilder* builder, const Node& like, const std::string& name)
      : builder_(*builder), like_(like), name_(name) {}

  ValueId operator()(absl::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                     absl::string_view suffix) {
    return builder_.Emit(op, std::move(inputs), std::move(attrs), like_,
                         absl::StrCat(name_, ".", suffix));
  }
  ValueId Scaled(ValueId x, double factor, absl::string_view suffix) {
    return (*this)("scale", {x}, {{"value", factor}}, suffix);
  }
  ValueId Product(ValueId a, ValueId b, const std::string& spec, absl::string_view suffix) {
    return (*this)("matmul", {a, b}, {{"spec", spec}}, suffix);
  }

 private:
  GraphBuilder& builder_;
  const Node& like_;
  const std::string& name_;
};

}  // namespace

ValueId MakeOrthogonal(GraphBuilder* builder, ValueId direction, int row_dims, const Node& like,
                       const std::string& name) {
  Emitter emit(builder, like, name);
  const TensorType type = builder->graph().type(direction);
  const std::vector<std::string> whole(static_cast<size_t>(type.ndim()), "-");
  ValueId x = emit("reshard", {direction},
                   {{"pin", int64_t{1}},
                    {"sharding", absl::StrJoin(whole, ",")},
                    {kLabelAttr, std::string("matrix")}},
                   "whole");
  const ValueId squares = emit("sum_squares", {x}, {}, "squares");
  const ValueId inverse = emit("inverse_norm", {squares}, {{"eps", kNewtonSchulzEps}}, "inverse");
  x = emit("mul", {x, inverse}, {}, "unit");
  const Products products = ProductsOf(type, row_dims);
  for (int i = 1; i <= kNewtonSchulzSteps; ++i) {
    const std::string at = absl::StrCat("ns", i);
    const ValueId gram = emit.Product(x, x, products.gram, absl::StrCat(at, ".gram"));
    const ValueId square = emit.Product(gram, gram, products.square, absl::StrCat(at, ".square"));
    const ValueId sum = emit("add",
                             {emit.Scaled(gram, kNewtonSchulzB, absl::StrCat(at, ".b")),
                              emit.Scaled(square, kNewtonSchulzC, absl::StrCat(at, ".c"))},
                             {}, absl::StrCat(at, ".sum"));
    const ValueId left = products.gram_first ? sum : x;
    const ValueId right = products.gram_first ? x : sum;
    x = emit("add",
             {emit.Scaled(x, kNewtonSchulzA, absl::StrCat(at, ".a")),
              emit.Product(left, right, products.polynomial, absl::StrCat(at, ".product"))},
             {}, at);
  }
  return emit("spectral_scale", {x}, {{"row_dims", int64_t{row_dims}}}, "orthogonal");
}

}  // namespace mgc
