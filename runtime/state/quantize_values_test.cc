#include "runtime/state/quantize_values.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

absl::StatusOr<ChannelScales> ScalesOf(const std::vector<float>& values,
                                       const std::vector<int64_t>& shape, int first, int dims) {
  return ChannelScales::Of(shape, first, dims, [&](int64_t whole, absl::Span<float> to) {
    std::copy_n(values.begin() + whole, to.size(), to.begin());
    return absl::OkStatus();
  });
}

TEST(ChannelScalesTest, OfTheLastDims) {
  const std::vector<float> values = {1, -254, 0, 2.54f, 127, 0};  // [2, 3]
  const auto scales = ScalesOf(values, {2, 3}, 1, 1);
  ASSERT_TRUE(scales.ok());
  std::vector<float> found(3);
  scales->CopyScales(0, absl::MakeSpan(found));
  EXPECT_FLOAT_EQ(found[0], 2.54f / 127);
  EXPECT_EQ(found[1], 2);
  EXPECT_EQ(found[2], 1) << "of a channel of zeros";
  std::vector<float> numbers = values;
  scales->Quantize(0, absl::MakeSpan(numbers));
  EXPECT_EQ(numbers, (std::vector<float>{50, -127, 0, 127, 64, 0}));  // 63.5 is as near to 64
}

TEST(ChannelScalesTest, OfTheFirstDimsFromAnywhere) {
  const std::vector<float> values = {1, 2, 4, -10, 5, 0};  // [2, 3]
  const auto scales = ScalesOf(values, {2, 3}, 0, 1);
  ASSERT_TRUE(scales.ok());
  std::vector<float> numbers(values.begin() + 2, values.begin() + 5);
  scales->Quantize(2, absl::MakeSpan(numbers));
  EXPECT_EQ(numbers, (std::vector<float>{127, -127, 64}));
  float last = 0;
  scales->CopyScales(1, absl::MakeSpan(&last, 1));
  EXPECT_FLOAT_EQ(last, 10.0f / 127);
}

// More values than are read at once.
TEST(ChannelScalesTest, IsNearInEveryChannel) {
  std::vector<float> values(3 * 50000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * (1 + static_cast<float>(i % 3));
  }
  const auto scales = ScalesOf(values, {50000, 3}, 1, 1);
  ASSERT_TRUE(scales.ok());
  std::vector<float> of_channel(3), numbers = values;
  scales->CopyScales(0, absl::MakeSpan(of_channel));
  scales->Quantize(0, absl::MakeSpan(numbers));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::fabs(numbers[i]), 127) << i;
    ASSERT_NEAR(numbers[i] * of_channel[i % 3], values[i], 0.5001f * of_channel[i % 3]) << i;
  }
}

TEST(ChannelScalesTest, WhatCannotBeReadIsTold) {
  const auto scales = ChannelScales::Of(
      {4}, 0, 1, [](int64_t, absl::Span<float>) { return absl::DataLossError("it ends"); });
  EXPECT_EQ(scales.status().message(), "it ends");
}

TEST(ChannelScalesTest, WhatIsNoNumberBecomesZero) {
  const auto scales = ScalesOf({1, 2}, {2}, 0, 1);
  ASSERT_TRUE(scales.ok());
  float value = kNan;
  scales->Quantize(0, absl::MakeSpan(&value, 1));
  EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace mgc
