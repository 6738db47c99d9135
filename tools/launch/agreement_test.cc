#include "tools/launch/agreement.h"

#include "absl/status/status.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(Agreement, SaysWhatDiffersWithBothSides) {
  const Terms mine = {{"options", "--steps 3"}, {"plans", "12"}};
  Terms theirs = mine;
  EXPECT_TRUE(CheckTerms({PackTerms(mine), PackTerms(theirs)}).ok());
  theirs[1].second = "13";
  EXPECT_EQ(CheckTerms({PackTerms(mine), PackTerms(mine), PackTerms(theirs)}).message(),
            "processes 0 and 2 have different plans: `12` and `13`");
  theirs.pop_back();
  EXPECT_EQ(CheckTerms({PackTerms(mine), PackTerms(theirs)}).message(),
            "processes 0 and 1 have different plans: `12` and `nothing`");
}

TEST(Agreement, HashesWholeFiles) {
  const std::string path = testing::TempDir() + "/hashed";
  std::string bytes((size_t{2} << 20) + 5, 'x');
  const auto hash_of = [&] {
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return *HashFile(path);
  };
  const std::string first = hash_of();
  EXPECT_EQ(hash_of(), first);
  for (size_t at : {size_t{0}, size_t{1} << 20, bytes.size() - 1}) {
    bytes[at] = 'y';
    EXPECT_NE(hash_of(), first) << at;
    bytes[at] = 'x';
  }
  bytes.pop_back();
  EXPECT_NE(hash_of(), first);
  // Pieces that change places.
  bytes = std::string(size_t{1} << 20, 'a') + std::string(size_t{1} << 20, 'b');
  const std::string in_order = hash_of();
  bytes = std::string(size_t{1} << 20, 'b') + std::string(size_t{1} << 20, 'a');
  EXPECT_NE(hash_of(), in_order);
  EXPECT_TRUE(absl::IsNotFound(HashFile(path + "none").status()));
}

}  // namespace
}  // namespace mgc
