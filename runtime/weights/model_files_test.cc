#include "runtime/weights/model_files.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/weights/weight_types.h"

namespace mgc {
namespace {

namespace fs = std::filesystem;

// Two tensors, of which one holds two parameters.
WeightMap Map() {
  WeightMap map;
  map.prefix = "model.";
  map.tensors = {
      {"model.norm.weight", {3}, {{"norm", {3}, {0, {{3, 1}}}, 0}}},
      {"model.qk.weight",
       {2, 4},
       {{"q", {2, 2}, {0, {{2, 4}, {2, 1}}}, 0}, {"k", {2, 2}, {2, {{2, 4}, {2, 1}}}, 0}}}};
  map.ignored = {{".mask", "a mask"}};
  map.old_endings = {{".gamma", ".weight"}};
  return map;
}

std::string NewDir() {
  static int number = 0;
  std::string dir = absl::StrCat(::testing::TempDir(), "model", number++);
  fs::remove_all(dir);
  fs::create_directories(dir);
  return dir;
}

SafetensorsView Tensor(const std::string& name, std::vector<int64_t> shape,
                       const std::string& bytes, SafetensorsType type) {
  return {name, type, std::move(shape), bytes};
}

const std::vector<float> kNorm = {1, 2, -0.5f};
const std::vector<float> kQk = {0, 1, 2, 3, 4, 5, 6, 7};

std::string WriteModel(SafetensorsType type, const std::string& norm, const std::string& qk) {
  const std::string dir = NewDir();
  const std::string bytes[] = {Encode(kNorm, type), Encode(kQk, type)};
  EXPECT_TRUE(WriteSafetensors(dir + "/model.safetensors", {Tensor(norm, {3}, bytes[0], type),
                                                            Tensor(qk, {2, 4}, bytes[1], type)})
                  .ok());
  return dir;
}

std::vector<float> ValuesOf(const ModelFiles& files, const std::string& parameter) {
  for (const PlacedPart& part : files.parts()) {
    if (part.part->parameter != parameter) continue;
    std::vector<float> values(parameter == "norm" ? 3 : 4);
    StridedReader reader(part, {{0, static_cast<int64_t>(values.size())}});
    EXPECT_TRUE(reader.Read(0, absl::MakeSpan(values)).ok());
    return values;
  }
  return {};
}

TEST(ModelFiles, ReadsEveryTypeWithAndWithoutThePrefixAndByOldNames) {
  for (SafetensorsType type :
       {SafetensorsType::kF32, SafetensorsType::kBF16, SafetensorsType::kF16}) {
    for (const char* norm :
         {"model.norm.weight", "norm.weight", "model.norm.gamma", "norm.gamma"}) {
      const auto files = ModelFiles::Open(WriteModel(type, norm, "qk.weight"), Map());
      ASSERT_TRUE(files.ok()) << files.status();
      EXPECT_EQ(ValuesOf(*files, "norm"), kNorm);
      EXPECT_EQ(ValuesOf(*files, "q"), (std::vector<float>{0, 1, 4, 5}));
      EXPECT_EQ(ValuesOf(*files, "k"), (std::vector<float>{2, 3, 6, 7}));
      EXPECT_EQ(files->TypeOf(0), type);
    }
  }
}

TEST(ModelFiles, TellsWhatItIgnoresAndWhy) {
  const std::string dir = NewDir();
  const std::string norm = Encode(kNorm, SafetensorsType::kF32);
  const std::string qk = Encode(kQk, SafetensorsType::kBF16);
  const SafetensorsType f32 = SafetensorsType::kF32;
  ASSERT_TRUE(
      WriteSafetensors(dir + "/model.safetensors",
                       {Tensor("norm.weight", {3}, norm, f32),
                        Tensor("qk.weight", {2, 4}, qk, SafetensorsType::kBF16),
                        Tensor("layers.0.mask", {3}, norm, f32), Tensor("extra", {3}, norm, f32)})
          .ok());
  const auto files = ModelFiles::Open(dir, Map());
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string report = absl::StrJoin(files->Report(), "\n");
  EXPECT_TRUE(absl::StrContains(report, "2 tensors make 3 parameters")) << report;
  EXPECT_TRUE(absl::StrContains(report, "a mask: layers.0.mask")) << report;
  EXPECT_TRUE(absl::StrContains(report, "no such parameter: extra")) << report;
}

// What Open says of a directory that does not fit.
std::string ProblemsOf(const std::string& dir) {
  const auto files = ModelFiles::Open(dir, Map());
  EXPECT_FALSE(files.ok());
  return std::string(files.status().message());
}

TEST(ModelFiles, NamesAllThatIsMissingOrOfAnotherShapeTypeOrTwiceThere) {
  const std::string dir = NewDir();
  const std::string norm = Encode(kNorm, SafetensorsType::kF32);
  const std::vector<int64_t> numbers = {1, 2, 3};
  const SafetensorsType f32 = SafetensorsType::kF32;
  ASSERT_TRUE(WriteSafetensors(dir + "/model.safetensors",
                               {Tensor("qk.weight", {3, 1}, norm, f32),
                                ViewOf("norm.weight", {3}, absl::MakeConstSpan(numbers))})
                  .ok());
  std::string problems = ProblemsOf(dir);
  EXPECT_TRUE(absl::StrContains(problems,
                                "tensor qk.weight has shape [3,1]; the configuration "
                                "makes it [2,4]"))
      << problems;
  EXPECT_TRUE(absl::StrContains(problems, "tensor norm.weight is of I64")) << problems;
  ASSERT_TRUE(
      WriteSafetensors(dir + "/model.safetensors", {Tensor("norm.weight", {3}, norm, f32),
                                                    Tensor("model.norm.weight", {3}, norm, f32)})
          .ok());
  problems = ProblemsOf(dir);
  EXPECT_TRUE(absl::StrContains(problems, "model.norm.weight is there already")) << problems;
  EXPECT_TRUE(absl::StrContains(problems, "tensor model.qk.weight is missing, of shape [2,4]"))
      << problems;
  EXPECT_TRUE(absl::IsNotFound(ModelFiles::Open(NewDir(), Map()).status()));
}

TEST(ModelFiles, ReadsShardsAndHoldsThemAgainstTheIndex) {
  const std::string dir = NewDir();
  const SafetensorsType f32 = SafetensorsType::kF32;
  const std::string norm = Encode(kNorm, f32);
  const std::string qk = Encode(kQk, f32);
  ASSERT_TRUE(
      WriteSafetensors(dir + "/a.safetensors", {Tensor("norm.weight", {3}, norm, f32)}).ok());
  ASSERT_TRUE(
      WriteSafetensors(dir + "/b.safetensors", {Tensor("qk.weight", {2, 4}, qk, f32)}).ok());
  const auto index = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(dir + "/model.safetensors.index.json", text).ok());
  };
  index(R"({"weight_map": {"norm.weight": "a.safetensors", "qk.weight": "b.safetensors"}})");
  const auto files = ModelFiles::Open(dir, Map());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ValuesOf(*files, "k"), (std::vector<float>{2, 3, 6, 7}));
  index(R"({"weight_map": {"norm.weight": "b.safetensors", "qk.weight": "b.safetensors"}})");
  EXPECT_TRUE(absl::StrContains(ProblemsOf(dir), "names 1 tensors that its files lack"));
  index(R"({"weight_map": {"norm.weight": "a.safetensors", "qk.weight": "a.safetensors"}})");
  EXPECT_TRUE(absl::StrContains(ProblemsOf(dir), "names 1 tensors that its files lack"));
  index(R"({"weight_map": {"norm.weight": "../a.safetensors", "qk.weight": 3}})");
  EXPECT_TRUE(absl::StrContains(ProblemsOf(dir), "in no file of this directory"));
  index("{}");
  EXPECT_TRUE(absl::StrContains(ProblemsOf(dir), "has no object `weight_map`"));
}

}  // namespace
}  // namespace mgc
