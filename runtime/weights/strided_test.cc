#include "runtime/weights/strided.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/weights/weight_types.h"

namespace mgc {
namespace {

std::string PathOf(const std::string& name) { return ::testing::TempDir() + name; }

// The places of a view's elements, by its definition.
std::vector<int64_t> PlacesOf(const StridedView& view) {
  std::vector<int64_t> places = {view.begin};
  for (const StridedView::Digit& digit : view.digits) {
    std::vector<int64_t> finer;
    for (int64_t place : places) {
      for (int64_t i = 0; i < digit.size; ++i) finer.push_back(place + i * digit.stride);
    }
    places = std::move(finer);
  }
  return places;
}

// A view of a part of a tensor of 4 dims of 8 elements at most, in another order than the tensor's.
StridedView RandomView(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  std::vector<StridedView::Digit> digits(static_cast<size_t>(draw(1, 4)));
  int64_t stride = 1;
  StridedView view;
  for (StridedView::Digit& digit : digits) {
    const int64_t before = draw(0, 1);
    digit = {draw(1, 6), stride};
    view.begin += before * stride;
    stride *= before + digit.size + draw(0, 1);
  }
  std::shuffle(digits.begin(), digits.end(), random);
  view.digits = std::move(digits);
  return view;
}

TEST(StridedReader, ReadsWhatTheViewSaysAndNoMore) {
  constexpr uint32_t kSeed = 15;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  // Each value says its place; not aligned to anything.
  std::vector<float> content(4096);
  std::iota(content.begin(), content.end(), 1.0f);
  const std::string path = PathOf("strided.bin");
  ASSERT_TRUE(WriteFileAtomically(path, "abc" + Encode(content, SafetensorsType::kF32)).ok());
  const auto file = PositionalFile::Open(path);
  ASSERT_TRUE(file.ok());
  for (int round = 0; round < 200; ++round) {
    ParameterPart part;
    part.view = RandomView(random);
    part.added = round % 3 == 0 ? 1 : 0;
    const std::vector<int64_t> places = PlacesOf(part.view);
    const auto count = static_cast<int64_t>(places.size());
    // Ranges as ranks have them.
    std::vector<ElementRange> wanted;
    int64_t sum = 0;
    for (int64_t at = 0; at < count;) {
      const int64_t begin = at + std::uniform_int_distribution<int64_t>(0, 3)(random);
      const int64_t end = begin + std::uniform_int_distribution<int64_t>(1, 9)(random);
      if (end > count) break;
      wanted.push_back({begin, end});
      sum += end - begin;
      at = end + 1;
    }
    StridedReader reader({&*file, 3, SafetensorsType::kF32, &part}, wanted);
    for (const ElementRange& range : wanted) {
      std::vector<float> values(static_cast<size_t>(range.end - range.begin));
      ASSERT_TRUE(reader.Read(range.begin, absl::MakeSpan(values)).ok());
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t place = places[static_cast<size_t>(range.begin) + i];
        ASSERT_EQ(values[i], static_cast<float>(place + 1) + part.added) << round;
      }
    }
    EXPECT_EQ(reader.bytes_read(), sum * 4) << round;
  }
}

TEST(Panels, CoverWhatIsWantedOnceAndStaySmall) {
  const StridedGrid grid({0, {{50, 1}, {7, 50}}});  // transposed: 50 rows of 7 columns
  EXPECT_EQ(grid.rows(), 50);
  EXPECT_EQ(grid.columns(), 7);
  std::vector<ElementRange> wanted;
  for (int64_t row = 0; row < 50; ++row) wanted.push_back({row * 7 + 2, row * 7 + 5});
  const std::vector<Panel> panels = PanelsOf(grid, wanted, 60);
  ASSERT_EQ(panels.size(), 3u);  // of 20, 20 and 10 rows
  std::set<int64_t> seen;
  for (const Panel& panel : panels) {
    EXPECT_LE(panel.values(), 60);
    for (int64_t row = panel.top; row < panel.bottom; ++row) {
      for (int64_t column = panel.left; column < panel.right; ++column) {
        EXPECT_TRUE(seen.insert(row * 7 + column).second);
      }
    }
  }
  EXPECT_EQ(seen.size(), 150u);
}

TEST(StridedReader, SaysWhatWasNotWantedAndWhatIsNotThere) {
  ParameterPart part;
  part.view = {0, {{4, 1}, {3, 4}}};
  const std::string path = PathOf("short.bin");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(40, '\0')).ok());
  const auto file = PositionalFile::Open(path);
  ASSERT_TRUE(file.ok());
  std::vector<float> value(1);
  StridedReader reader({&*file, 0, SafetensorsType::kF32, &part}, {{0, 1}, {5, 6}});
  EXPECT_TRUE(reader.Read(0, absl::MakeSpan(value)).ok());
  EXPECT_FALSE(reader.Read(1, absl::MakeSpan(value)).ok());
  StridedReader beyond({&*file, 0, SafetensorsType::kF32, &part}, {{11, 12}});
  EXPECT_TRUE(absl::IsDataLoss(beyond.Read(11, absl::MakeSpan(value))));
}

TEST(WeightTypes, ZeroKeepsItsSign) {
  for (SafetensorsType type :
       {SafetensorsType::kF32, SafetensorsType::kBF16, SafetensorsType::kF16}) {
    std::vector<float> values = {-0.0f, 0.25f};
    const std::string bytes = Encode(values, type);
    Decode(bytes, type, absl::MakeSpan(values));
    EXPECT_EQ(Encode(values, type), bytes);
    EXPECT_TRUE(std::signbit(values[0]));
  }
}

}  // namespace
}  // namespace mgc
