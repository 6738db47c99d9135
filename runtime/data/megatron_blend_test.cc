#include "runtime/data/megatron_blend.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "runtime/data/data.h"
#include "runtime/data/testing/npy_text.h"
#include "runtime/data/tokens/token_file_writer.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSeqLength = 3;
constexpr int64_t kSources = 3;
constexpr int64_t kSamples = 40;  // of each source

// Three files, each with an order in which its samples come from the last to the first.
class MegatronBlendTest : public FolderTest {
 protected:
  MegatronBlendTest() {
    for (int32_t source = 0; source < kSources; ++source) WriteSource(source);
  }

  // One document of numbers that ascend.
  void WriteSource(int32_t source) const {
    const std::string name = absl::StrCat("source", source);
    std::vector<int32_t> tokens, begins, shuffle;
    for (int32_t i = 0; i < kSamples * kSeqLength + 1; ++i) tokens.push_back(1000 * source + i);
    for (int32_t row = 0; row <= kSamples; ++row) {
      begins.insert(begins.end(), {0, row * static_cast<int32_t>(kSeqLength)});
      if (row < kSamples) shuffle.push_back(kSamples - 1 - row);
    }
    auto writer = TokenFileWriter::Create(Path(name), TokenFormat::kMegatron, 30000);
    EXPECT_TRUE((*writer)->Append(tokens).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    Write(name + "-document_index.npy", NpyText<int32_t>("<i4", "1,", {0}));
    Write(name + "-sample_index.npy",
          NpyText<int32_t>("<i4", absl::StrCat(kSamples + 1, ", 2"), begins));
    Write(name + "-shuffle_index.npy",
          NpyText<int32_t>("<i4", absl::StrCat(kSamples, ","), shuffle));
  }

  void Write(const std::string& name, const std::string& bytes) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
  }

  void WriteBlend(const std::vector<int16_t>& sources, const std::vector<int64_t>& samples) const {
    Write("b-dataset_index.npy",
          NpyText<int16_t>("<i2", absl::StrCat(sources.size(), ","), sources));
    Write("b-dataset_sample_index.npy",
          NpyText<int64_t>("<i8", absl::StrCat(samples.size(), ","), samples));
  }

  // The first `weights.size()` sources.
  std::vector<TokenDataset::Ordered> Ordered(const std::vector<double>& weights) const {
    std::vector<TokenDataset::Ordered> files;
    for (size_t source = 0; source < weights.size(); ++source) {
      const std::string prefix = Path(absl::StrCat("source", source));
      auto order = MegatronOrder::Open(prefix, *TokenFile::Open(prefix), kSeqLength);
      EXPECT_TRUE(order.ok()) << order.status();
      files.push_back({*order, weights[source]});
    }
    return files;
  }

  static int32_t FirstToken(const TokenDataset& data, int64_t sample) {
    std::vector<int32_t> tokens(kSeqLength + 1);
    const absl::Status read = data.ReadSample(sample, 0, 30000, absl::MakeSpan(tokens));
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(tokens.back(), tokens.front() + kSeqLength);
    return tokens.front();
  }

  std::string Why(std::vector<int64_t> samples) const {
    return std::string(MegatronBlend::Open(Path("b"), std::move(samples)).status().message());
  }
};

// Blends of Megatron-LM's (tests/data/README.md), as files of its and from the weights alone.
TEST_F(MegatronBlendTest, SamplesComeAsInMegatron) {
  const std::string path = "tests/data/blending.json";
  const auto root = ParseJson(*ReadFile(path), path);
  ASSERT_TRUE(root.ok()) << root.status();
  for (const JsonValue& c : root->Find("cases")->items) {
    std::vector<double> weights;
    std::vector<int16_t> sources;
    std::vector<int64_t> samples;
    for (const JsonValue& weight : c.Find("weights")->items) weights.push_back(weight.number);
    for (const JsonValue& source : c.Find("dataset_index")->items) {
      sources.push_back(static_cast<int16_t>(source.integer));
    }
    for (const JsonValue& sample : c.Find("dataset_sample_index")->items) {
      samples.push_back(sample.integer);
    }
    WriteBlend(sources, samples);
    auto blend = MegatronBlend::Open(Path("b"), std::vector<int64_t>(weights.size(), kSamples));
    ASSERT_TRUE(blend.ok()) << blend.status();
    const TokenDataset listed = TokenDataset::InOrder(Ordered(weights), *blend, kSeqLength);
    const TokenDataset by_weights = TokenDataset::InOrder(Ordered(weights), nullptr, kSeqLength);
    EXPECT_EQ(listed.samples_per_epoch(), static_cast<int64_t>(sources.size()));
    for (size_t i = 0; i < sources.size(); ++i) {
      const int64_t row = kSamples - 1 - samples[i];
      const auto first = static_cast<int32_t>(int64_t{1000} * sources[i] + row * kSeqLength);
      EXPECT_EQ(FirstToken(listed, static_cast<int64_t>(i)), first) << i;
      EXPECT_EQ(FirstToken(by_weights, static_cast<int64_t>(i)), first) << i;
    }
    EXPECT_EQ(FirstToken(listed, listed.samples_per_epoch()), FirstToken(listed, 0));
  }
}

TEST_F(MegatronBlendTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(Why({4, 4}), HasSubstr("b-dataset_index.npy"));
  WriteBlend({0, 1, 0}, {0, 0});
  EXPECT_THAT(Why({4, 4}), HasSubstr("has 3 samples, and "));
  WriteBlend({0, 1, 2}, {0, 0, 1});
  EXPECT_THAT(Why({4, 4}), HasSubstr("b-dataset_index.npy: row 2 has 2, which is not below 2"));
  EXPECT_THAT(Why({4, 4, 1}),
              HasSubstr("b-dataset_sample_index.npy: row 2 has 1, which is not below 1"));
  EXPECT_EQ(Why({4, 4, 2}), "");
  WriteBlend({0, -1, 0}, {0, 0, 1});
  const auto blend = MegatronBlend::Open(Path("b"), {4, 4});
  ASSERT_TRUE(blend.ok()) << blend.status();
  EXPECT_THAT(std::string((*blend)->At(1).status().message()), HasSubstr("row 1 has 65535"));
}

}  // namespace
}  // namespace mgc
