#include "tools/cli/gzip.h"

#include <zlib.h>

#include <cstddef>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// What zlib's own reader makes of a file.
std::string Unzipped(const std::string& content) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/file.gz");
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text(1 << 20, '\0');
  const int bytes = gzread(file, text.data(), static_cast<unsigned>(text.size()));
  EXPECT_EQ(gzdirect(file), 0);  // it was compressed
  EXPECT_EQ(gzclose(file), Z_OK);
  text.resize(static_cast<size_t>(bytes));
  return text;
}

TEST(Gzip, ReadsBack) {
  std::mt19937 dice(7);
  std::string noise(300000, '\0');
  for (char& c : noise) c = static_cast<char>(dice());
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(500000, 'x'), noise}) {
    EXPECT_EQ(Unzipped(Gzip(text).value()), text);
  }
  EXPECT_LT(Gzip(std::string(500000, 'x'))->size(), 2000);
}

TEST(Gzip, IsReadWhateverTheName) {
  const std::string text(300000, 'y');
  const std::string file = Gzip(text).value();
  EXPECT_EQ(AsRead("a", file).value(), text);
  EXPECT_EQ(AsRead("a.gz", "text").value(), "text");
  EXPECT_EQ(AsRead("a", Gzip("").value()).value(), "");
  for (size_t bytes = 2; bytes < file.size(); bytes += 7) {
    const absl::Status cut = AsRead("a\n", file.substr(0, bytes)).status();
    EXPECT_EQ(cut.message(), "a\\x0A: a compressed file that is damaged or cut") << bytes;
  }
  std::string damaged = file;
  damaged[damaged.size() - 6] ^= 1;  // its checksum
  EXPECT_FALSE(AsRead("a", damaged).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(AsRead("a", file, text.size() - 1).status()));
}

TEST(Gzip, FollowsTheName) {
  EXPECT_EQ(AsNamed("a.json", "text").value(), "text");
  EXPECT_EQ(AsNamed("a.json.gz", "text").value(), Gzip("text").value());
}

}  // namespace
}  // namespace mgc
