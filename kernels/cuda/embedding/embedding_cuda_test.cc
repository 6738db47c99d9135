// Lookups and their gradients in tables of several rows a block, with ids that repeat often.
#include "gtest/gtest.h"
#include "kernels/cuda/embedding/embedding.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

// `often` of the ids are `hot`, the others drawn, some outside of the table.
std::vector<int64_t> Ids(const TableShape& shape, size_t n, double often, int64_t hot) {
  std::mt19937 draw(5);
  std::uniform_int_distribution<int64_t> any(shape.offset - 3, shape.offset + shape.rows + 2);
  std::vector<int64_t> ids(n);
  for (int64_t& id : ids) id = draw() < often * 4294967296.0 ? hot : any(draw);
  return ids;
}

TEST(CudaEmbedding, LookupGivesZerosForOtherRanksIds) {
  for (const int64_t cols : {1, 130, 132}) {
    const TableShape shape = {9, cols, 7, 100};
    const std::vector<float> x = UniformFloats(9 * cols, 1);
    const std::vector<int64_t> ids = Ids(shape, 301, 0.2, 103);
    const DeviceArray<float> table(x), y(std::vector<float>(ids.size() * size_t(cols)));
    const DeviceArray<int64_t> index(ids);
    ASSERT_EQ(Lookup(nullptr, shape, table.data(), 301, index.data(), y.data()), 0);
    const std::vector<float> rows = y.Values();
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t row = RowOf(shape, ids[i / size_t(cols)]);
      const size_t at = static_cast<size_t>(row * cols) + i % size_t(cols);
      ASSERT_EQ(rows[i], row < 0 ? 0.0f : x[at]) << i;
    }
  }
}

enum class Begin { kZeros, kApart, kInPlace };

template <class T>
void ExpectAddsInTokenOrder(const TableShape& shape, size_t n, double often, Begin begin,
                            size_t shift) {
  const auto cols = static_cast<size_t>(shape.cols);
  const std::vector<int64_t> ids = Ids(shape, n, often, shape.offset + 1);
  const std::vector<T> dy = Narrowed<T>(UniformFloats(static_cast<int64_t>(n * cols), 2));
  const std::vector<float> old = UniformFloats(shape.rows * shape.cols, 3);
  std::vector<float> expected = begin == Begin::kZeros ? std::vector<float>(old.size()) : old;
  for (size_t i = 0; i < dy.size(); ++i) {
    const int64_t row = RowOf(shape, ids[i / cols]);
    if (row >= 0) expected[static_cast<size_t>(row) * cols + i % cols] += AsFloat(dy[i]);
  }
  const DeviceArray<int64_t> index(ids);
  const DeviceArray<T> grads(dy, shift);
  const DeviceArray<float> before(old, shift), after(old, shift);
  const float* const initial = begin == Begin::kZeros   ? nullptr
                               : begin == Begin::kApart ? before.data()
                                                        : after.data();
  ASSERT_EQ(LookupGrad(nullptr, shape, static_cast<int64_t>(n), index.data(), grads.data(), initial,
                       after.data()),
            0);
  EXPECT_EQ(after.Values(), expected);
}

TEST(CudaEmbedding, GradientAddsInTokenOrder) {
  const TableShape few = {3, 132, 3, 50};     // a block a row
  const TableShape odd = {5, 7, 4, 0};        // columns that make no vectors, a row of padding
  const TableShape many = {300, 20, 290, 9};  // several rows a block
  ExpectAddsInTokenOrder<float>(few, 0, 0, Begin::kZeros, 0);
  ExpectAddsInTokenOrder<float>(few, 4200, 0.9, Begin::kZeros, 0);  // more than a block lists
  ExpectAddsInTokenOrder<Bfloat16>(few, 2100, 0.5, Begin::kApart, 0);
  ExpectAddsInTokenOrder<Float16>(few, 100, 0.5, Begin::kInPlace, 1);
  ExpectAddsInTokenOrder<Bfloat16>(odd, 300, 0.5, Begin::kZeros, 0);
  ExpectAddsInTokenOrder<Bfloat16>(odd, 300, 0.5, Begin::kInPlace, 0);
  ExpectAddsInTokenOrder<Bfloat16>(many, 700, 0.1, Begin::kZeros, 0);
}

}  // namespace
}  // namespace mgc::cuda
