// Norms over rows of a warp and of a block, in whole groups or not, and sums over many rows,
// against double precision.
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

constexpr float kEps = 1e-5f;
// Each row is as the next, and so is each strip of columns: of many rows only the sums are taken,
// of many columns only the rows' results.
constexpr int64_t kManyRows = 100, kManyCols = 1000;

// The roundings of T beside those of f32.
template <class T>
double RoomOf() {
  return sizeof(T) == 4 ? 0 : (std::is_same_v<T, Bfloat16> ? 0x1p-8 : 0x1p-11);
}

// One matrix of x and dy, with what double precision makes of them.
template <class T>
class NormCase {
 public:
  NormCase(int64_t rows, int64_t cols, bool centers)
      : shape_{rows, cols},
        centers_(centers),
        x_(Narrowed<T>(UniformFloats(rows * cols, 1, -1, 3))),
        dy_(Narrowed<T>(UniformFloats(rows * cols, 2))),
        w_(UniformFloats(cols, 3)),
        b_(UniformFloats(cols, 4)) {
    for (int64_t r = 0; r < rows; ++r) {
      double mean = 0, squares = 0;
      for (int64_t c = 0; centers && c < cols; ++c) mean += X(r, c) / static_cast<double>(cols);
      for (int64_t c = 0; c < cols; ++c) squares += (X(r, c) - mean) * (X(r, c) - mean);
      mean_.push_back(static_cast<float>(mean));
      rstd_.push_back(
          static_cast<float>(1 / std::sqrt(squares / static_cast<double>(cols) + kEps)));
    }
  }

  // Results as one array: y, rstd and the mean, dx, dw and db.
  std::vector<float> ExpectAll(size_t shift) const {
    std::vector<float> all;
    if (shape_.rows < kManyRows) {
      ExpectNorm(shift, &all);
      ExpectGrad(shift, &all);
    }
    if (shape_.cols < kManyCols) ExpectParamGrad(shift, &all);
    return all;
  }

 private:
  double X(int64_t r, int64_t c) const { return AsFloat(x_[At(r, c)]); }
  double Dy(int64_t r, int64_t c) const { return AsFloat(dy_[At(r, c)]); }
  double W(int64_t c) const { return w_[static_cast<size_t>(c)]; }
  double Hat(int64_t r, int64_t c) const {
    const auto row = static_cast<size_t>(r);
    return (X(r, c) - mean_[row]) * rstd_[row];
  }
  size_t At(int64_t r, int64_t c) const { return static_cast<size_t>(r * shape_.cols + c); }

  static void Append(const std::vector<float>& more, std::vector<float>* all) {
    all->insert(all->end(), more.begin(), more.end());
  }

  // In place.
  void ExpectNorm(size_t shift, std::vector<float>* all) const {
    const DeviceArray<T> x(x_, shift);
    const DeviceArray<float> w(w_, shift), b(b_), mean(mean_), rstd(rstd_);
    ASSERT_EQ(centers_ ? LayerNorm(nullptr, shape_, kEps, x.data(), w.data(), b.data(), x.data(),
                                   mean.data(), rstd.data())
                       : RmsNorm(nullptr, shape_, kEps, x.data(), w.data(), x.data(), rstd.data()),
              0);
    const std::vector<float> y = Widened(x.Values()), means = mean.Values(), scales = rstd.Values();
    for (int64_t r = 0; r < shape_.rows; ++r) {
      const auto row = static_cast<size_t>(r);
      ASSERT_NEAR(means[row], mean_[row], 1e-6) << "row " << r;
      ASSERT_NEAR(scales[row], rstd_[row], 1e-6) << "row " << r;
      for (int64_t c = 0; c < shape_.cols; ++c) {
        const double offset = centers_ ? b_[static_cast<size_t>(c)] : 0;
        ASSERT_NEAR(y[At(r, c)], Hat(r, c) * W(c) + offset, 2e-6 + 4 * RoomOf<T>())
            << "row " << r << ", column " << c;
      }
    }
    Append(y, all);
    Append(means, all);
    Append(scales, all);
  }

  // In the place of dy.
  void ExpectGrad(size_t shift, std::vector<float>* all) const {
    const DeviceArray<T> x(x_, shift), dy(dy_, shift);
    const DeviceArray<float> w(w_, shift), mean(mean_), rstd(rstd_);
    ASSERT_EQ(centers_ ? LayerNormGrad(nullptr, shape_, dy.data(), x.data(), w.data(), mean.data(),
                                       rstd.data(), dy.data())
                       : RmsNormGrad(nullptr, shape_, dy.data(), x.data(), w.data(), rstd.data(),
                                     dy.data()),
              0);
    const std::vector<float> dx = Widened(dy.Values());
    const auto cols = static_cast<double>(shape_.cols);
    for (int64_t r = 0; r < shape_.rows; ++r) {
      double whole = 0, along = 0;
      for (int64_t c = 0; c < shape_.cols; ++c) {
        whole += centers_ ? Dy(r, c) * W(c) / cols : 0;
        along += Dy(r, c) * W(c) * Hat(r, c) / cols;
      }
      for (int64_t c = 0; c < shape_.cols; ++c) {
        const double expected =
            rstd_[static_cast<size_t>(r)] * (Dy(r, c) * W(c) - whole - Hat(r, c) * along);
        ASSERT_NEAR(dx[At(r, c)], expected, 2e-6 + 4 * RoomOf<T>())
            << "row " << r << ", column " << c;
      }
    }
    Append(dx, all);
  }

  void ExpectParamGrad(size_t shift, std::vector<float>* all) const {
    const DeviceArray<T> x(x_, shift), dy(dy_, shift);
    const DeviceArray<float> mean(mean_), rstd(rstd_), dw(w_), db(b_);
    const int parts = shape_.rows < kManyRows ? 1 : 4;
    const DeviceArray<float> sums(
        std::vector<float>(static_cast<size_t>(int64_t{2} * parts * shape_.cols), NAN));
    const PartsRoom room = {sums.data(), parts};
    ASSERT_EQ(centers_ ? LayerNormParamGrad(nullptr, shape_, room, dy.data(), x.data(), mean.data(),
                                            rstd.data(), dw.data(), db.data())
                       : RmsNormParamGrad(nullptr, shape_, room, dy.data(), x.data(), rstd.data(),
                                          dw.data()),
              0);
    const std::vector<float> weights = dw.Values(), offsets = db.Values();
    for (int64_t c = 0; c < shape_.cols; ++c) {
      double along = 0, whole = 0;
      for (int64_t r = 0; r < shape_.rows; ++r) {
        along += Dy(r, c) * Hat(r, c);
        whole += Dy(r, c);
      }
      const auto col = static_cast<size_t>(c);
      const double room = 1e-6 * std::sqrt(static_cast<double>(shape_.rows)) + 1e-6;
      ASSERT_NEAR(weights[col], along, 2 * room) << "column " << c;
      ASSERT_NEAR(offsets[col], centers_ ? whole : b_[col], room) << "column " << c;
    }
    Append(weights, all);
    Append(offsets, all);
  }

  NormShape shape_;
  bool centers_;
  std::vector<T> x_, dy_;
  std::vector<float> w_, b_, mean_, rstd_;
};

template <class T>
void ExpectNorms(int64_t rows, int64_t cols) {
  for (const bool centers : {true, false}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << cols << ", " << centers);
    const NormCase<T> norm(rows, cols, centers);
    EXPECT_EQ(norm.ExpectAll(0), norm.ExpectAll(1)) << "bits depend on the place";
  }
}

template <class T>
class CudaNorm : public testing::Test {};
using Elements = testing::Types<float, Bfloat16, Float16>;
TYPED_TEST_SUITE(CudaNorm, Elements);

TYPED_TEST(CudaNorm, RowsOfAnySize) {
  ExpectNorms<TypeParam>(9, 5);
  ExpectNorms<TypeParam>(5, 768);
  ExpectNorms<TypeParam>(3, 1100);
  ExpectNorms<TypeParam>(3, 2048);
}

// More groups than a block keeps in its registers.
TYPED_TEST(CudaNorm, RowsThatAreReadAgain) { ExpectNorms<TypeParam>(1, 17000); }

// A thread has several runs of rows.
TYPED_TEST(CudaNorm, ManyRows) { ExpectNorms<TypeParam>(8300, 9); }

}  // namespace
}  // namespace mgc::cuda
