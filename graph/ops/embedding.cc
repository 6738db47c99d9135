// Lookup of rows by index, for token and learned position embeddings.

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// Calls fn(i, row) for every index i whose row of the table is in the local piece.
template <class M, class F>
void ForEachLocalRow(const EvalContext<M>& c, F fn) {
  const DimPiece& v = c.piece("v");
  for (size_t i = 0; i < c.in(1).index.size(); ++i) {
    const int64_t row = c.in(1).index[i] - v.begin;
    if (row >= 0 && row < v.valid) fn(i, static_cast<size_t>(row));
  }
}

struct EvalLookup {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const size_t width = static_cast<size_t>(c.in(0).shape.back());
    ForEachLocalRow(c, [&](size_t i, size_t row) {
      for (size_t h = 0; h < width; ++h) {
        c.out(0).real[i * width + h] = c.in(0).real[row * width + h];
      }
    });
  }
};

OpDef Lookup() {
  OpDef op;
  op.name = "lookup";
  op.precision = Precision::kNarrowResult;
  op.doc =
      "Rows of table[v,h] by index; zero when the index is outside the local piece of the table.";
  op.operands = {"table", "ids"};
  op.results = {"y"};
  op.index_operands = {1};
  op.rule = "v h, ... -> ... h";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.offset_factors = {"v"};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    c.Add(0, c.Emit("lookup_grad", {c.input(0), c.input(1), c.output_grad(0)}));
    return absl::OkStatus();
  };
  op.flops_per_point = 0;
  // As many rows of the table as of the result, which may be of other ranks' indices.
  op.bytes = [](const OpUse& use) {
    return BytesOf(*use.operands[1]) + 2 * BytesOf(*use.results[0]);
  };
  op.eval = EvalWith<EvalLookup>();
  op.cases = {{"f32[vocab=5%2,4], i64[2,3]<5"}, {"f32[4,1], i64[1]<4"}};
  return op;
}

// Adds rows of operand 2 to those of the result that operand 1 names.
template <class M>
void AddRows(EvalContext<M>& c) {
  const size_t width = static_cast<size_t>(c.out(0).shape.back());
  ForEachLocalRow(c, [&](size_t i, size_t row) {
    for (size_t h = 0; h < width; ++h) {
      auto& sum = c.out(0).real[row * width + h];
      sum = c.model.Add(sum, c.in(2).real[i * width + h]);
    }
  });
}

// Every row of operand 2 is read; the sum's row is read and written.
double RowsAddedBytes(const OpUse& use) {
  return BytesOf(*use.operands[1]) + 3 * BytesOf(*use.operands[2]);
}

struct EvalLookupGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    AddRows(c);
  }
};

OpDef LookupGrad() {
  OpDef op;
  op.name = "lookup_grad";
  op.doc = "Gradient of lookup: rows of dy added up by index. Of the table only the type counts.";
  op.operands = {"table", "ids", "dy"};
  op.results = {"dtable"};
  op.index_operands = {1};
  op.type_operands = {0};
  op.wide_operands = {0};
  op.wide_results = {0};
  op.rule = "v h, ..., ... h -> v h";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {2};
  op.offset_factors = {"v"};
  op.no_grad = "a gradient itself; second derivatives are not taken";
  op.flops_per_point = 0;
  op.bytes = [](const OpUse& use) { return RowsAddedBytes(use) + BytesOf(*use.results[0]); };
  op.eval = EvalWith<EvalLookupGrad>();
  op.cases = {{"f32[vocab=5%2,4], i64[2,3]<5, f32[2,3,4]"}, {"f32[4,1], i64[1]<4, f32[1,1]"}};
  return op;
}

struct EvalLookupGradAccumulate {
  template <class M>
  static void Run(EvalContext<M>& c) {
    c.out(0).real = c.in(0).real;
    AddRows(c);
  }
};

OpDef LookupGradAccumulate() {
  OpDef op;
  op.name = "lookup_grad_accumulate";
  op.doc = "acc plus the gradient of lookup: rows of dy added by index.";
  op.operands = {"acc", "ids", "dy"};
  op.results = {"acc_next"};
  op.index_operands = {1};
  op.wide_operands = {0};
  op.wide_results = {0};
  op.rule = "v h, ..., ... h -> v h";
  op.linearity = Linearity::kJoint;
  op.linear_operands = {0, 2};
  op.offset_factors = {"v"};
  op.no_grad = "made by fusing, after differentiation";
  op.flops_per_point = 0;
  op.bytes = RowsAddedBytes;  // the rest of the sum stays where it is
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalLookupGradAccumulate>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    const ValueId rows = c.Emit("lookup_grad", {c.input(0), c.input(1), c.input(2)});
    return {c.Emit("accumulate", {c.input(0), rows})};
  };
  op.replaces_expansion = [](const OpUse&) { return true; };
  op.cases = {{"f32[vocab=5%2,4], i64[2,3]<5, f32[2,3,4]"}, {"f32[4,1], i64[1]<4, f32[1,1]"}};
  return op;
}

// Rows of operand 1 over those of operand 0, of each sample from the row on that operand 2 says.
struct EvalWriteRows {
  template <class M>
  static void Run(EvalContext<M>& c) {
    c.out(0).real = c.in(0).real;
    const std::vector<int64_t>& into = c.in(0).shape;
    const int64_t rows = c.in(1).shape[1];
    const size_t width = static_cast<size_t>(into[2] * into[3]);
    for (int64_t b = 0; b < into[0]; ++b) {
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t to = c.in(2).index[static_cast<size_t>(b)] + i;
        if (to < 0 || to >= into[1]) continue;
        for (size_t w = 0; w < width; ++w) {
          c.out(0).real[static_cast<size_t>(b * into[1] + to) * width + w] =
              c.in(1).real[static_cast<size_t>(b * rows + i) * width + w];
        }
      }
    }
  }
};

OpDef WriteRows() {
  OpDef op;
  op.name = "write_rows";
  op.doc =
      "into[b,t,k,d] with rows[b,s,k,d] in the place of rows at[b], at[b] + 1, ... of each sample; "
      "those behind the last row of `into` are left out.";
  op.operands = {"into", "rows", "at"};
  op.results = {"into_next"};
  op.index_operands = {2};
  op.rule = "b t! k d, b s! k d, b -> b t! k d";
  op.offset_factors = {"t"};
  op.no_grad = "what steps leave for the next is of models that are not trained";
  op.flops_per_point = 0;
  op.bytes = [](const OpUse& use) { return 2 * BytesOf(*use.operands[1]); };
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalWriteRows>();
  op.cases = {{"f32[2,5,2,3], f32[2,1,2,3], i64[2]<5"},
              {"f32[2,5,2,3], f32[2,3,2,3], i64[2]<5"},
              {"f32[1,3,1,1], f32[1,3,1,1], i64[1]<1"}};
  return op;
}

}  // namespace

std::vector<OpDef> EmbeddingOps() {
  return {Lookup(), LookupGrad(), LookupGradAccumulate(), WriteRows()};
}

}  // namespace mgc
