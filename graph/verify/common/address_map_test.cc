#include "graph/verify/common/address_map.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/random.h"
#include "graph/verify/common/memory_ranges.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Range kAll{-1000, 1000};

std::vector<std::string> Shown(const AddressMap<std::string>& map, const Range& range = kAll) {
  std::vector<std::string> shown;
  for (const auto& entry : map.Overlapping(range)) {
    shown.push_back(absl::StrCat(entry.value, " ", ToString(entry.range)));
  }
  return shown;
}

bool Stays(std::string* /*value*/) { return true; }

AddressMap<std::string> Three() {
  AddressMap<std::string> map;
  map.Put({20, 30}, "b");
  map.Put({10, 20}, "a");
  map.Put({40, 50}, "c");
  return map;
}

TEST(AddressMapTest, FindsWhatOverlaps) {
  const AddressMap<std::string> map = Three();
  EXPECT_THAT(Shown(map), ElementsAre("a [10, 20)", "b [20, 30)", "c [40, 50)"));
  EXPECT_THAT(Shown(map, {19, 21}), ElementsAre("a [10, 20)", "b [20, 30)"));
  EXPECT_THAT(Shown(map, {20, 40}), ElementsAre("b [20, 30)"));
  EXPECT_THAT(Shown(map, {30, 40}), IsEmpty());
  EXPECT_THAT(Shown(map, {15, 15}), IsEmpty()) << "an empty range overlaps nothing";
  ASSERT_NE(map.Find({29, 99}), nullptr);
  EXPECT_EQ(map.Find({29, 99})->value, "b");
  EXPECT_EQ(map.Find({50, 99}), nullptr);
  ASSERT_NE(map.At(40), nullptr);
  EXPECT_EQ(*map.At(40), "c");
  EXPECT_EQ(map.At(41), nullptr);
  EXPECT_EQ(map.End(), 50);
  EXPECT_EQ(AddressMap<int>().End(), 0);
}

TEST(AddressMapTest, NothingIsLeftOfWhatIsOverwritten) {
  AddressMap<std::string> map = Three();
  map.Put({15, 25}, "d");
  EXPECT_THAT(Shown(map), ElementsAre("d [15, 25)", "c [40, 50)"));
  map.Erase({49, 60});
  EXPECT_THAT(Shown(map), ElementsAre("d [15, 25)"));
  map.Put({17, 17}, "e");
  EXPECT_THAT(Shown(map), ElementsAre("d [15, 25)")) << "an empty range holds nothing";
}

TEST(AddressMapTest, WhatIsCutStaysOnBothSidesIfAsked) {
  AddressMap<std::string> map;
  map.Put({0, 30}, "a");
  map.Put({10, 20}, "b", Stays);
  EXPECT_THAT(Shown(map), ElementsAre("a [0, 10)", "b [10, 20)", "a [20, 30)"));
  std::vector<std::string> met;
  map.Erase({5, 25}, [&](std::string* value) {
    met.push_back(*value);
    *value += "'";
    return *value != "b'";
  });
  EXPECT_THAT(met, ElementsAre("a", "b", "a"));
  EXPECT_THAT(Shown(map), ElementsAre("a' [0, 5)", "a' [25, 30)"));
}

// Beside an array with a number for each byte.
TEST(AddressMapTest, DoesWhatAnArrayOfBytesDoes) {
  constexpr uint64_t kSeed = 9;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  AddressMap<int> map;
  std::array<int, 64> bytes{};
  for (int round = 1; round <= 2000; ++round) {
    const uint32_t bits = RandomBits(kSeed, 0, static_cast<uint64_t>(round));
    const Range range{bits % 64, bits % 64 + (bits >> 8) % (65 - bits % 64)};
    const bool erase = (bits >> 16) % 4 == 0;
    const auto odd_stays = [](int* value) { return *value % 2 == 1; };
    for (int64_t at = range.begin; at < range.end; ++at) {
      const int old = bytes[static_cast<size_t>(at)];
      for (int& byte : bytes) byte = old % 2 == 0 && byte == old ? 0 : byte;
    }
    for (int64_t at = range.begin; at < range.end; ++at) {
      bytes[static_cast<size_t>(at)] = erase ? 0 : round;
    }
    if (erase) {
      map.Erase(range, odd_stays);
    } else {
      map.Put(range, round, odd_stays);
    }
    for (int64_t at = 0; at < 64; ++at) {
      const auto* entry = map.Find({at, at + 1});
      ASSERT_EQ(entry == nullptr ? 0 : entry->value, bytes[static_cast<size_t>(at)])
          << "round " << round << ", byte " << at;
    }
  }
}

}  // namespace
}  // namespace mgc
