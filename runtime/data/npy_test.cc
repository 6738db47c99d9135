#include "runtime/data/npy.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(const std::string& header, const std::string& values) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return absl::StrCat(file, header, values);
}

std::string Dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order, ", 'shape': ", shape,
                      ", }   \n");
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string Why(const std::string& file) {
  return std::string(ParseNpy(file, "f.npy").status().message());
}

TEST(NpyTest, ReadsItsThreeTypes) {
  const auto real =
      ParseNpy(File(Dict("<f4", "False", "(2, 3)"), Bytes<float>({1, 2, 3, 4, 5, 6})), "f.npy");
  ASSERT_TRUE(real.ok()) << real.status();
  EXPECT_THAT(real->shape, ElementsAre(2, 3));
  EXPECT_THAT(std::get<std::vector<float>>(real->values), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(real->Sample(1), Bytes<float>({4, 5, 6}));
  const auto whole = ParseNpy(File(Dict("<i8", "False", "(2,)"), Bytes<int64_t>({-1, 7})), "f.npy");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(std::get<std::vector<int64_t>>(whole->values), ElementsAre(-1, 7));
  const auto narrow =
      ParseNpy(File(Dict("<i4", "False", "(1,2,)"), Bytes<int32_t>({-5, 6})), "f.npy");
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_THAT(std::get<std::vector<int64_t>>(narrow->values), ElementsAre(-5, 6));
}

TEST(NpyTest, SaysWhatItDoesNotRead) {
  EXPECT_THAT(Why(File(Dict("<f8", "False", "(1,)"), std::string(8, 'x'))),
              HasSubstr("f.npy: its type is `<f8`; `<f4`, `<i8` and `<i4` are read"));
  EXPECT_THAT(Why(File(Dict(">f4", "False", "(1,)"), "1234")), HasSubstr("`>f4`"));
  EXPECT_THAT(Why(File(Dict("<f4", "True", "(1,)"), "1234")), HasSubstr("Fortran order"));
  EXPECT_THAT(Why(File(Dict("<f4", "False", "(2,)"), "1234")),
              HasSubstr("behind the header lie 4 bytes, its shape and type `<f4` take 8"));
  EXPECT_THAT(Why(File(Dict("<f4", "False", "(4611686018427387904, 4)"), "1234")),
              HasSubstr("more than can be counted"));
  std::string second = File(Dict("<f4", "False", "(1,)"), "1234");
  second[6] = 2;
  EXPECT_THAT(Why(second), HasSubstr("version 2.0 of the format; 1.0 is read"));
  for (const char* shape : {"(3)", "3", "(-1,)", "(1, 99999999999999999999)", "(1,", "(,)"}) {
    EXPECT_THAT(Why(File(Dict("<f4", "False", shape), "1234")), HasSubstr("no dict")) << shape;
  }
  EXPECT_THAT(Why(File("{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "1234")),
              HasSubstr("no dict"));
  EXPECT_THAT(Why(File("{'descr': '<f4', 'shape': (1,)}", "1234")), HasSubstr("no dict"));
  EXPECT_THAT(Why("\x93NUMPY"), HasSubstr("no .npy file"));
}

// Whatever the bytes are, the answer is a tensor that is whole or an error.
TEST(NpyTest, TakesAnyBytes) {
  const std::string sound = File(Dict("<f4", "False", "(2, 3)"), std::string(24, 'v'));
  for (size_t length = 0; length < sound.size(); ++length) {
    EXPECT_FALSE(ParseNpy(sound.substr(0, length), "f").ok()) << length;
  }
  std::mt19937_64 random(20);
  for (int round = 0; round < 20000; ++round) {
    std::string file = sound;
    for (int change = 0; change <= round % 3; ++change) {
      file[random() % file.size()] = static_cast<char>(random());
    }
    const auto tensor = ParseNpy(file, "f");
    if (!tensor.ok()) continue;
    int64_t values = 1;
    for (int64_t size : tensor->shape) values *= size;
    const size_t held = std::visit([](const auto& list) { return list.size(); }, tensor->values);
    EXPECT_EQ(static_cast<int64_t>(held), values) << "round " << round << ", seed 20";
  }
}

}  // namespace
}  // namespace mgc
