#include "frontends/weights/weight_map.h"

#include <set>
#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "frontends/weights/adapter_targets.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

std::vector<ModelPreset> TinyPresets() {
  std::vector<ModelPreset> tiny;
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name.find("tiny") != absl::string_view::npos) tiny.push_back(preset);
  }
  return tiny;
}

// A map is read in both directions: of every element of a tensor one parameter's element is told.
// The number of elements.
int64_t ExpectCoversOnce(const WeightMap& map) {
  std::set<std::string> names;
  int64_t sum = 0;
  for (const FileTensor& tensor : map.tensors) {
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
        EXPECT_GE(place, 0);
        EXPECT_LT(place, elements);
        if (place >= 0 && place < elements) ++times[static_cast<size_t>(place)];
      }
    }
    EXPECT_EQ(times, std::vector<int>(static_cast<size_t>(elements), 1));
  }
  return sum;
}

TEST(WeightMap, CoversEveryTensorOfEveryFamilyOnce) {
  for (const ModelPreset& preset : TinyPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    const auto config = LoadModelPreset(preset.name);
    ASSERT_TRUE(config.ok());
    const auto map = WeightMapOf(*config);
    ASSERT_TRUE(map.ok()) << map.status();
    EXPECT_EQ(ExpectCoversOnce(*map), ParameterCount(*config));
  }
}

// Adapters beside all linear layers: two tensors for each, [rank, inputs] and [outputs, rank],
// where the model's files have one.
TEST(WeightMap, AdaptersOfEveryFamilyAreThoseOfItsLinearTensors) {
  for (const ModelPreset& preset : TinyPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    const auto config = LoadModelPreset(preset.name);
    ASSERT_TRUE(config.ok());
    const AdapterTargets all = FindAdapterTargets(*config, {kAllLinear});
    ASSERT_TRUE(all.problems.empty());
    const AdapterOptions options{3, 6, all.layers};
    const auto adapter = AdapterMapOf(*config, options);
    ASSERT_TRUE(adapter.ok()) << adapter.status();
    ExpectCoversOnce(*adapter);
    const auto adapted = AdaptedParameters(*config, options);
    ASSERT_TRUE(adapted.ok()) << adapted.status();
    std::set<std::string> of_adapter;
    for (const AdaptedParameter& parameter : *adapted) {
      of_adapter.insert({parameter.a, parameter.b});
    }
    std::set<std::string> in_files;
    for (const FileTensor& tensor : adapter->tensors) {
      for (const ParameterPart& part : tensor.parts) in_files.insert(part.parameter);
    }
    EXPECT_EQ(of_adapter, in_files);
    // Each stands beside a tensor of the model's.
    const auto map = WeightMapOf(*config);
    ASSERT_TRUE(map.ok());
    size_t beside = 0;
    for (const FileTensor& tensor : map->tensors) {
      const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
      for (const FileTensor& narrow : adapter->tensors) {
        if (narrow.name == "base_model.model." + module + ".lora_A.weight" &&
            tensor.name == module + ".weight") {
          ++beside;
          EXPECT_EQ(narrow.shape[0], 3);
        }
      }
    }
    EXPECT_EQ(2 * beside, adapter->tensors.size());
  }
}

TEST(AdapterTargets, AreNamesOfTheFilesOrTheirEnds) {
  const auto gpt2 = LoadModelPreset("gpt2-tiny");
  ASSERT_TRUE(gpt2.ok());
  EXPECT_EQ(DefaultAdapterTargets(*gpt2), std::vector<std::string>{"c_attn"});
  const AdapterTargets both = FindAdapterTargets(*gpt2, {"c_proj", "c_attn"});
  EXPECT_EQ(both.layers,
            (std::vector<AdaptedLayers>{
                {"attention.q", "attention.k", "attention.v"}, {"attention.out"}, {"mlp.down"}}));
  EXPECT_TRUE(both.fan_in_fan_out);
  EXPECT_EQ(FindAdapterTargets(*gpt2, {"mlp.c_proj"}).layers,
            (std::vector<AdaptedLayers>{{"mlp.down"}}));
  EXPECT_EQ(FindAdapterTargets(*gpt2, {kAllLinear}).modules,
            (std::vector<std::string>{"c_attn", "c_proj", "c_fc"}));
  const AdapterTargets none = FindAdapterTargets(*gpt2, {"proj", "wte", "c_fc", "lm_head"});
  EXPECT_EQ(none.problems.size(), 3u);
  EXPECT_EQ(none.modules, std::vector<std::string>{"c_fc"});

  const auto llama = LoadModelPreset("llama-tiny");
  ASSERT_TRUE(llama.ok());
  EXPECT_EQ(DefaultAdapterTargets(*llama), (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_FALSE(FindAdapterTargets(*llama, {kAllLinear}).fan_in_fan_out);
}

}  // namespace
}  // namespace mgc
