#include "graph/verify/meaning/tile_store.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::HasSubstr;

class TileStoreTest : public testing::Test {
 protected:
  TileView View(const Sharding& sharding) { return {&name_, kNoLayer, &type_, &sharding}; }
  static Tiles Filled(uint64_t value) {
    ResidueTensor tile = ResidueTensor::Make({2}, false);
    tile.real = {{value, value}, {value, value}};
    return {tile};
  }
  std::string ErrorAt(Range range, const Sharding& sharding) {
    const absl::StatusOr<const Tiles*> tiles = store_.Read(range, View(sharding));
    return tiles.ok() ? "" : std::string(tiles.status().message());
  }

  const std::string name_ = "x";
  const TensorType type_ = {DType::kF32, {{2, "embed"}}};
  const Sharding whole_ = Sharding::Whole(1);
  const Mesh mesh_ = Mesh();
  TileStore store_{mesh_, 1};
};

TEST_F(TileStoreTest, ReadsWhatWasWritten) {
  store_.Write({64, 72}, View(whole_), Filled(5));
  const absl::StatusOr<const Tiles*> tiles = store_.Read({64, 72}, View(whole_));
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  EXPECT_EQ((**tiles)[0].real[1].a, 5u);
}

TEST_F(TileStoreTest, AWriteThatOverlapsPoisons) {
  store_.Write({64, 72}, View(whole_), Filled(5));
  store_.Write({68, 76}, View(whole_), Filled(6));
  EXPECT_THAT(ErrorAt({64, 72}, whole_), HasSubstr("[meaning_v2]"));
  EXPECT_EQ(ErrorAt({68, 76}, whole_), "");
  EXPECT_THAT(ErrorAt({0, 8}, whole_), HasSubstr("nothing is there"));
}

// The vector of a gradient norm over a single parameter.
TEST_F(TileStoreTest, AScalarIsAVectorOfOneEntry) {
  const TensorType scalar = {DType::kF64, {}};
  const TensorType vector = {DType::kF64, {{1, ""}}};
  const Sharding none = Sharding::Whole(0);
  ResidueTensor tile = ResidueTensor::Make({}, false);
  tile.real[0].a = 7;
  store_.Write({64, 72}, {&name_, kNoLayer, &scalar, &none}, {tile});
  const absl::StatusOr<const Tiles*> tiles =
      store_.Read({64, 72}, {&name_, kNoLayer, &vector, &whole_});
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  EXPECT_EQ((**tiles)[0].real[0].a, 7u);
}

TEST_F(TileStoreTest, AnotherShardingIsAnError) {
  Sharding owed = whole_;
  owed.max.Add(0);
  absl::StatusOr<Mesh> mesh = Mesh::Create({{"tp", 2}});
  ASSERT_TRUE(mesh.ok());
  TileStore store(*mesh, 1);
  store.Write({0, 8}, View(whole_), Filled(5));
  const absl::StatusOr<const Tiles*> tiles = store.Read({0, 8}, View(owed));
  EXPECT_THAT(std::string(tiles.status().message()), HasSubstr("[meaning_v3]"));
}

TEST_F(TileStoreTest, ZeroedMemoryReadsAsZerosUntilItIsWritten) {
  store_.Zero({0, 64});
  const absl::StatusOr<const Tiles*> zeros = store_.Read({16, 24}, View(whole_));
  ASSERT_TRUE(zeros.ok()) << zeros.status();
  EXPECT_TRUE((**zeros)[0].real[0].IsZero());
  store_.Write({16, 24}, View(whole_), Filled(5));
  EXPECT_EQ(ErrorAt({24, 32}, whole_), "") << "the rest is still zero";
  EXPECT_EQ(ErrorAt({8, 16}, whole_), "");
  EXPECT_THAT(ErrorAt({12, 20}, whole_), HasSubstr("[meaning_v2]"));
}

// A vector of f64 may have been written element by element.
TEST_F(TileStoreTest, ScalarsMakeUpAVector) {
  const TensorType scalar = {DType::kF64, {}};
  const TensorType vector = {DType::kF64, {{3, ""}}};
  const Sharding none = {};
  ResidueTensor seven = ResidueTensor::Make({}, false);
  seven.real[0] = {7, 7};
  store_.Zero({0, 24});
  store_.Write({8, 16}, {&name_, kNoLayer, &scalar, &none}, {seven});
  const absl::StatusOr<const Tiles*> tiles =
      store_.Read({0, 24}, {&name_, kNoLayer, &vector, &whole_});
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  EXPECT_TRUE((**tiles)[0].real[0].IsZero());
  EXPECT_EQ((**tiles)[0].real[1].a, 7u);
}

}  // namespace
}  // namespace mgc
