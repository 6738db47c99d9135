#include "runtime/state/manifest.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/random.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

Manifest Example() {
  Manifest manifest;
  TrainingState& state = manifest.state;
  state.step = 100;
  state.samples = int64_t{1} << 60;
  state.carried = {{"loss_scale", 0.1}, {"steps", 7}};
  state.options = {{"lr", "0.001"}, {"seed", "18446744073709551615"}};
  state.data = {{"text", "12 bytes, \"quoted\"\n"}};
  state.version = "mgc 9";
  manifest.files = {{"a.safetensors", {{"w", {2, 3}, 128, 0xfedcba9876543210}, {"b", {}, 152, 1}}},
                    {"empty.safetensors", {}}};
  return manifest;
}

// The text with its hash as if that had been written.
std::string Signed(const std::string& text) {
  const std::string body = text.substr(0, text.rfind("\n\"hash\""));
  return absl::StrCat(body, "\n\"hash\": \"", absl::Hex(StreamOf(body), absl::kZeroPad16), "\"}\n");
}

TEST(ManifestTest, ReadsBack) {
  const std::string text = ManifestText(Example());
  const auto read = ParseManifest(text, "m");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ManifestText(*read), text);
  EXPECT_EQ(read->state.samples, int64_t{1} << 60);
  EXPECT_EQ(read->state.carried[0].second, 0.1);
  EXPECT_EQ(read->state.data[0].second, "12 bytes, \"quoted\"\n");
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].tensors[0].hash, 0xfedcba9876543210);
  EXPECT_EQ(read->files[0].tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Signed(text), text);
}

TEST(ManifestTest, AnyBitAndAnyEndIsSeen) {
  const std::string text = ManifestText(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] ^= static_cast<char>(1 << bit);
      EXPECT_EQ(ParseManifest(flipped, "m").status().code(), absl::StatusCode::kDataLoss) << i;
    }
    EXPECT_EQ(ParseManifest(text.substr(0, i), "m").status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(ManifestTest, WhatCannotBeIsSaidAtOnceWithItsPlace) {
  std::string text = ManifestText(Example());
  text = absl::StrReplaceAll(text, {{"\"step\": 100", "\"step\": -1"},
                                    {"\"a.safetensors\"", "\"../a\""},
                                    {"\"0.001\"", "5"},
                                    {"\"offset\": 128", "\"ofset\": 128"}});
  const absl::Status status = ParseManifest(Signed(text), "m").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"step", "../a names no file of the folder", "lr must be a string",
                           "w.offset is missing", "ofset"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(ManifestTest, AnotherVersionIsRefusedAsThat) {
  const std::string text =
      absl::StrReplaceAll(ManifestText(Example()), {{"\"version\": 2", "\"version\": 1"}});
  const absl::Status status = ParseManifest(Signed(text), "m").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version"));
}

}  // namespace
}  // namespace mgc
