#include "runtime/data/safetensors.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FileOf(absl::string_view header, absl::string_view data) {
  uint64_t size = header.size();
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &size, 8);
  return absl::StrCat(prefix, header, data);
}

std::string ErrorOf(absl::string_view header, absl::string_view data) {
  return std::string(SafetensorsFile::Parse(FileOf(header, data), "f").status().message());
}

std::string WriteAndRead(std::vector<SafetensorsView> tensors) {
  std::string path = ::testing::TempDir() + "/safetensors_test";
  EXPECT_TRUE(WriteSafetensors(path, std::move(tensors)).ok());
  return ReadFile(path).value();
}

TEST(Safetensors, EveryByteIsAsTheFormatSays) {
  std::vector<float> f = {1.5f};
  std::vector<int64_t> i = {-1};
  std::string bytes =
      WriteAndRead({ViewOf("b", {1}, f), ViewOf("a", {}, f), ViewOf("z", {1, 1}, i)});
  std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"z\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string f_bytes("\x00\x00\xc0\x3f", 4);
  EXPECT_EQ(bytes, FileOf(header, std::string(8, '\xff') + f_bytes + f_bytes));
}

TEST(Safetensors, ValuesComeBack) {
  std::vector<float> f = {1, -2.5f, 3e-40f, 0, 5, 6};
  std::vector<double> d = {0.1, -1e300};
  std::vector<int64_t> i = {INT64_MIN, 0, INT64_MAX};
  std::string bytes = WriteAndRead(
      {ViewOf("layers.0.mlp.up", {2, 3}, f), ViewOf("d", {2}, d), ViewOf("i", {3}, i),
       ViewOf("none", {0, 7}, absl::Span<const float>()), ViewOf("\xc3\xa9\"", {2}, d)});
  SafetensorsFile file = SafetensorsFile::Parse(bytes, "f").value();
  EXPECT_EQ(file.entries().size(), 5u);
  EXPECT_EQ(file.Floats("layers.0.mlp.up").value(), f);
  EXPECT_THAT(file.entries().at("layers.0.mlp.up").shape, ElementsAre(2, 3));
  EXPECT_EQ(file.Doubles("d").value(), d);
  EXPECT_EQ(file.Doubles("\xc3\xa9\"").value(), d);
  EXPECT_EQ(file.Integers("i").value(), i);
  EXPECT_TRUE(file.Floats("none")->empty());
  EXPECT_TRUE(absl::IsNotFound(file.Floats("no").status()));
  EXPECT_EQ(file.Floats("d").status().message(), "f: tensor d is F64, not F32");
}

TEST(Safetensors, WriterRefusesWhatNoReaderTakes) {
  std::vector<float> f = {1, 2};
  std::string path = ::testing::TempDir() + "/safetensors_refused";
  EXPECT_FALSE(WriteSafetensors(path, {ViewOf("a", {3}, f)}).ok());
  EXPECT_FALSE(WriteSafetensors(path, {ViewOf("a", {2}, f), ViewOf("a", {2}, f)}).ok());
  EXPECT_FALSE(WriteSafetensors(path, {ViewOf("__metadata__", {2}, f)}).ok());
  EXPECT_FALSE(WriteSafetensors(path, {ViewOf("\xff", {2}, f)}).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadFile(path).status()));
  EXPECT_TRUE(SafetensorsFile::Parse(WriteAndRead({}), "f")->entries().empty());
}

TEST(Safetensors, LayoutSaysWhereTheBytesAre) {
  const std::vector<float> f = {1.5f, 2.5f};
  const std::vector<int64_t> i = {-1};
  const std::vector<SafetensorsSpec> specs = {{"b", SafetensorsType::kF32, {2}},
                                              {"a", SafetensorsType::kF32, {1, 2}},
                                              {"z", SafetensorsType::kI64, {1}}};
  const SafetensorsLayout layout = SafetensorsLayout::Create(specs).value();
  const std::string bytes =
      WriteAndRead({ViewOf("b", {2}, f), ViewOf("a", {1, 2}, f), ViewOf("z", {1}, i)});
  EXPECT_EQ(bytes.substr(0, layout.header().size()), layout.header());
  EXPECT_EQ(layout.file_bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_THAT(layout.order(), ElementsAre(2u, 1u, 0u));
  const int64_t begin = static_cast<int64_t>(layout.header().size());
  EXPECT_EQ(layout.OffsetOf(2), begin);
  EXPECT_EQ(layout.OffsetOf(1), begin + 8);
  EXPECT_EQ(layout.OffsetOf(0), begin + 16);
}

TEST(Safetensors, LayoutRefusesWhatCannotBeCounted) {
  const auto refused = [](std::vector<SafetensorsSpec> specs) {
    return absl::IsInvalidArgument(SafetensorsLayout::Create(specs).status());
  };
  EXPECT_TRUE(refused({{"a", SafetensorsType::kF32, {-1}}}));
  EXPECT_TRUE(refused({{"a", SafetensorsType::kF32, {int64_t{1} << 32, int64_t{1} << 32}}}));
  EXPECT_TRUE(refused({{"a", SafetensorsType::kF32, {int64_t{1} << 57}},
                       {"b", SafetensorsType::kF32, {int64_t{1} << 57}}}));
}

TEST(Safetensors, ReadsUnalignedData) {
  std::string header = "{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}} ";
  while (header.size() % 8 != 3) header += ' ';
  double value = 0.3;
  std::string data(8, '\0');
  std::memcpy(data.data(), &value, 8);
  EXPECT_THAT(SafetensorsFile::Parse(FileOf(header, data), "f")->Doubles("a").value(),
              ElementsAre(0.3));
}

TEST(Safetensors, ReaderIsStrict) {
  const std::string a = "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
  const std::string data = "abcdefgh";
  EXPECT_TRUE(SafetensorsFile::Parse(FileOf("{" + a + "}  ", "abcd"), "f").ok());
  EXPECT_THAT(ErrorOf("{" + a + "}", data), HasSubstr("end at byte 4 of the data, which has 8"));
  EXPECT_THAT(ErrorOf("{" + a + "}", "abc"), HasSubstr("end at byte 4"));
  EXPECT_THAT(ErrorOf("{" + a + "," + a + "}", "abcd"), HasSubstr("given twice"));
  auto with = [&](absl::string_view from, absl::string_view to) {
    return ErrorOf("{" + absl::StrReplaceAll(a, {{from, to}}) + "}", "abcd");
  };
  EXPECT_THAT(with("[0,4]", "[4,8]"), HasSubstr("begins at byte 4 of the data, not at 0"));
  EXPECT_THAT(with("[0,4]", "[4,0]"), HasSubstr("has offsets 4 to 0"));
  EXPECT_THAT(with("[0,4]", "[0,4,4]"), HasSubstr("two offsets"));
  EXPECT_THAT(with("[0,4]", "[-4,0]"), HasSubstr("not a size"));
  EXPECT_THAT(with("[1]", "[2]"), HasSubstr("shape [2] has offsets 0 to 4"));
  EXPECT_THAT(with("[1]", "[4294967296,4294967296]"), HasSubstr("has offsets"));
  EXPECT_THAT(with("[1]", "[1.0]"), HasSubstr("not a size"));
  EXPECT_THAT(with("[1]", "{}"), HasSubstr("not a list"));
  EXPECT_THAT(with("F32", "U16"),
              HasSubstr("dtype U16; supported are I64, F64, I32, F32, BF16, F16"));
  EXPECT_THAT(with("dtype", "type"), HasSubstr("other keys"));
  EXPECT_THAT(ErrorOf("{\"__metadata__\":{\"x\":1}," + a + "}", "abcd"), HasSubstr("not a string"));
  EXPECT_THAT(ErrorOf(" {" + a + "}", "abcd"), HasSubstr("does not begin with {"));
  std::string overlap = absl::StrReplaceAll(a, {{"\"a\"", "\"b\""}});
  EXPECT_THAT(ErrorOf("{" + a + "," + overlap + "}", "abcd"),
              HasSubstr("tensor b begins at byte 0"));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  std::vector<float> f = {1, 2};
  std::string bytes = WriteAndRead({ViewOf("a", {2}, f)});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(SafetensorsFile::Parse(bytes.substr(0, size), "f").ok()) << size;
  }
}

TEST(Safetensors, MutatedFilesNeverCrash) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  std::vector<float> f = {1, 2};
  std::vector<int64_t> i = {3};
  const std::string original = WriteAndRead({ViewOf("a", {2}, f), ViewOf("b", {1}, i)});
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = original;
    for (int edits = random() % 3; edits >= 0; --edits) {
      bytes[random() % bytes.size()] =
          static_cast<char>(random() % 3 == 0 ? random() : "0123456789{}[]\",:"[random() % 17]);
    }
    auto file = SafetensorsFile::Parse(bytes, "f");
    refused += !file.ok();
    if (!file.ok()) continue;
    for (const auto& [name, entry] : file->entries()) {
      static_cast<void>(entry);
      EXPECT_TRUE(file->Floats(name).ok() || file->Integers(name).ok() || file->Doubles(name).ok())
          << "seed " << seed;
    }
  }
  EXPECT_GT(refused, 10000) << "seed " << seed;
}

}  // namespace
}  // namespace mgc
