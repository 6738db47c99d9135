#include "graph/verify/meaning/reference_orthogonal.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "graph/ir/newton_schulz.h"

namespace mgc {
namespace {

// Row-major.
struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<ResiduePair> at;
};

Matrix Product(const ResidueModel& m, const Matrix& a, const Matrix& b) {
  Matrix made = {a.rows, b.columns, std::vector<ResiduePair>(a.rows * b.columns)};
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t j = 0; j < b.columns; ++j) {
      ResiduePair& sum = made.at[i * b.columns + j];
      for (size_t k = 0; k < a.columns; ++k) {
        sum = m.Add(sum, m.Mul(a.at[i * a.columns + k], b.at[k * b.columns + j]));
      }
    }
  }
  return made;
}

Matrix Transposed(const Matrix& a) {
  Matrix made = {a.columns, a.rows, std::vector<ResiduePair>(a.at.size())};
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t j = 0; j < a.columns; ++j) made.at[j * a.rows + i] = a.at[i * a.columns + j];
  }
  return made;
}

// factor a + other b.
Matrix Combined(const ResidueModel& m, double factor, const Matrix& a, double other,
                const Matrix& b) {
  Matrix made = a;
  for (size_t i = 0; i < made.at.size(); ++i) {
    made.at[i] = m.Add(m.Mul(m.Constant(factor), a.at[i]), m.Mul(m.Constant(other), b.at[i]));
  }
  return made;
}

void Scale(const ResidueModel& m, ResiduePair factor, Matrix* a) {
  for (ResiduePair& element : a->at) element = m.Mul(factor, element);
}

}  // namespace

ResidueTensor OrthogonalOf(const ResidueModel& m, ResidueTensor direction, int64_t row_dims) {
  Matrix x = {1, 1, std::move(direction.real)};
  for (size_t d = 0; d < direction.shape.size(); ++d) {
    const bool is_row = static_cast<int64_t>(d) < row_dims;
    (is_row ? x.rows : x.columns) *= static_cast<size_t>(direction.shape[d]);
  }
  ResiduePair square;
  for (const ResiduePair& element : x.at) square = m.Add(square, m.Mul(element, element));
  const ResiduePair norm = m.Fn("sqrt", {square});
  Scale(m, m.Inv(m.Add(norm, m.Constant(kNewtonSchulzEps))), &x);
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    const Matrix gram = Product(m, x, Transposed(x));
    const Matrix sum = Combined(m, kNewtonSchulzB, gram, kNewtonSchulzC, Product(m, gram, gram));
    x = Combined(m, kNewtonSchulzA, x, 1, Product(m, sum, x));
  }
  const auto side = static_cast<int64_t>(std::max(x.rows, x.columns));
  Scale(m, m.Mul(m.Constant(0.2), m.Fn("sqrt", {m.Size(side)})), &x);
  direction.real = std::move(x.at);
  return direction;
}

}  // namespace mgc
