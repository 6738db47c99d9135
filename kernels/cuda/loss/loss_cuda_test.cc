// The cross-entropy over rows of a warp and of a block, in whole groups or not, against double
// precision.
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/loss/loss.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kOffset = 1000;

// The ids of rows: valid, before, beyond the valid ones, valid, ....
std::vector<int64_t> IdsOf(const LogitsShape& shape) {
  std::vector<int64_t> ids;
  for (int64_t r = 0; r < shape.rows; ++r) {
    const int64_t odd[] = {shape.valid - 1, -1, shape.valid, r * 37 % shape.valid};
    ids.push_back(kOffset + odd[r % 4]);
  }
  return ids;
}

template <class T>
class LossCase {
 public:
  LossCase(int64_t rows, int64_t cols, int64_t valid)
      : shape_{rows, cols, valid, kOffset},
        logits_(Narrowed<T>(UniformFloats(rows * cols, 1, -9, 9))),
        m_(UniformFloats(rows, 2, 8, 9)),
        dz_(UniformFloats(rows, 3)),
        dp_(UniformFloats(rows, 4)),
        ids_(IdsOf(shape_)) {}

  void ExpectSums(size_t shift, std::vector<float>* z) const {
    const DeviceArray<T> logits(logits_, shift);
    const DeviceArray<float> m(m_), made(std::vector<float>(m_.size(), NAN)),
        picked(std::vector<float>(m_.size(), NAN));
    ASSERT_EQ(ExpSum(nullptr, shape_, logits.data(), m.data(), made.data()), 0);
    const DeviceArray<int64_t> ids(ids_);
    ASSERT_EQ(Pick(nullptr, shape_, logits.data(), ids.data(), picked.data()), 0);
    *z = made.Values();
    const std::vector<float> p = picked.Values();
    for (int64_t r = 0; r < shape_.rows; ++r) {
      const auto row = static_cast<size_t>(r);
      double sum = 0;
      for (int64_t c = 0; c < shape_.valid; ++c) sum += ExpAt(r, c);
      EXPECT_NEAR((*z)[row], sum, 1e-6 * sum) << "row " << r;
      const int64_t target = TargetOf(r);
      EXPECT_EQ(p[row], target < 0 ? 0.0f : AsFloat(logits_[IndexOf(r, target)])) << "row " << r;
    }
  }

  // In place where `in_place`.
  void ExpectGrads(size_t shift, bool in_place, std::vector<float>* dlogits) const {
    const DeviceArray<T> logits(logits_, shift), apart(logits_, shift);
    const DeviceArray<float> m(m_), dz(dz_), dp(dp_);
    const DeviceArray<int64_t> ids(ids_);
    const DeviceArray<T>& made = in_place ? logits : apart;
    ASSERT_EQ(CrossEntropyGrad(nullptr, shape_, logits.data(), m.data(), dz.data(), ids.data(),
                               dp.data(), made.data()),
              0);
    *dlogits = Widened(made.Values());
    ExpectGrad(*dlogits, true, true);
    ASSERT_EQ(PickGrad(nullptr, shape_, ids.data(), dp.data(), apart.data()), 0);
    ExpectGrad(Widened(apart.Values()), false, true);
    const DeviceArray<T> again(logits_, shift);
    ASSERT_EQ(ExpSumGrad(nullptr, shape_, again.data(), m.data(), dz.data(), again.data()), 0);
    ExpectGrad(Widened(again.Values()), true, false);
  }

 private:
  size_t IndexOf(int64_t r, int64_t c) const { return static_cast<size_t>(r * shape_.cols + c); }
  double ExpAt(int64_t r, int64_t c) const {
    return std::exp(double{AsFloat(logits_[IndexOf(r, c)])} - m_[static_cast<size_t>(r)]);
  }
  int64_t TargetOf(int64_t r) const {
    const int64_t col = ids_[static_cast<size_t>(r)] - kOffset;
    return col >= 0 && col < shape_.valid ? col : -1;
  }

  void ExpectGrad(const std::vector<float>& dlogits, bool from_sum, bool from_pick) const {
    for (int64_t r = 0; r < shape_.rows; ++r) {
      const auto row = static_cast<size_t>(r);
      for (int64_t c = 0; c < shape_.cols; ++c) {
        double expected = 0;
        if (from_sum && c < shape_.valid) expected += ExpAt(r, c) * dz_[row];
        if (from_pick && c == TargetOf(r)) expected += dp_[row];
        const double room = sizeof(T) == 4 ? 1e-6 : 4e-3;
        ASSERT_NEAR(dlogits[IndexOf(r, c)], expected, room * std::fabs(expected) + 1e-7)
            << "row " << r << ", column " << c;
      }
    }
  }

  LogitsShape shape_;
  std::vector<T> logits_;
  std::vector<float> m_, dz_, dp_;
  std::vector<int64_t> ids_;
};

template <class T>
void ExpectLoss(int64_t rows, int64_t cols, int64_t valid) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << cols << ", " << valid << " valid");
  const LossCase<T> loss(rows, cols, valid);
  std::vector<float> z, shifted, grads, shifted_grads;
  loss.ExpectSums(0, &z);
  loss.ExpectSums(1, &shifted);
  EXPECT_EQ(z, shifted) << "bits depend on the place";
  loss.ExpectGrads(0, true, &grads);
  loss.ExpectGrads(1, false, &shifted_grads);
  EXPECT_EQ(grads, shifted_grads) << "bits depend on the place";
}

template <class T>
class CudaLoss : public testing::Test {};
using Elements = testing::Types<float, Bfloat16, Float16>;
TYPED_TEST_SUITE(CudaLoss, Elements);

TYPED_TEST(CudaLoss, RowsOfAnySize) {
  ExpectLoss<TypeParam>(9, 5, 3);
  ExpectLoss<TypeParam>(5, 96, 90);
  ExpectLoss<TypeParam>(4, 1100, 1100);
  ExpectLoss<TypeParam>(4, 3001, 2800);
}

// More groups than twice what a block has threads.
TYPED_TEST(CudaLoss, RowsThatABlockGoesOverInTurns) { ExpectLoss<TypeParam>(1, 17000, 16999); }

}  // namespace
}  // namespace mgc::cuda
