#include "frontends/weights/weight_map.h"

#include <set>
#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// A map is read in both directions: of every element of a tensor one parameter's element is told.
TEST(WeightMap, CoversEveryTensorOfEveryFamilyOnce) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name.find("tiny") == absl::string_view::npos) continue;
    SCOPED_TRACE(std::string(preset.name));
    const auto config = LoadModelPreset(preset.name);
    ASSERT_TRUE(config.ok());
    const auto map = WeightMapOf(*config);
    ASSERT_TRUE(map.ok()) << map.status();
    std::set<std::string> names;
    int64_t sum = 0;
    for (const FileTensor& tensor : map->tensors) {
      SCOPED_TRACE(tensor.name);
      EXPECT_TRUE(names.insert(tensor.name).second);
      int64_t elements = 1;
      for (int64_t size : tensor.shape) elements *= size;
      sum += elements;
      std::vector<int> times(static_cast<size_t>(elements));
      for (const ParameterPart& part : tensor.parts) {
        std::vector<int64_t> places = {part.view.begin};
        for (const StridedView::Digit& digit : part.view.digits) {
          std::vector<int64_t> finer;
          for (int64_t place : places) {
            for (int64_t i = 0; i < digit.size; ++i) finer.push_back(place + i * digit.stride);
          }
          places = finer;
        }
        for (int64_t place : places) {
          ASSERT_GE(place, 0);
          ASSERT_LT(place, elements);
          ++times[static_cast<size_t>(place)];
        }
      }
      EXPECT_EQ(times, std::vector<int>(static_cast<size_t>(elements), 1));
    }
    EXPECT_EQ(sum, ParameterCount(*config));
  }
}

}  // namespace
}  // namespace mgc
