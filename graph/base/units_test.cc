#include "graph/base/units.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(BytesTextTest, UsesBinaryUnits) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.0 KiB");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText((int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(BytesText(int64_t{5} << 40), "5.0 TiB");
  EXPECT_EQ(BytesText(int64_t{5} << 50), "5.0 PiB");
}

}  // namespace
}  // namespace mgc
