#include "runtime/data/documents.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr int32_t kEnd = 9;

TokenDataset TextOf(const std::vector<std::vector<int32_t>>& files, int64_t seq_length) {
  TokenSource source;
  for (const std::vector<int32_t>& tokens : files) {
    source.parts.push_back(
        {TokenFile::FromTokens(tokens, "text"), 0, static_cast<int64_t>(tokens.size())});
  }
  TokenDataset text = *TokenDataset::Create({source}, seq_length);
  text.EndDocumentsWith({kEnd, /*mask_loss=*/false});
  return text;
}

// Numbers and the tokens of all documents, samples one behind the other.
std::vector<std::pair<int64_t, std::vector<int32_t>>> Read(const TokenDataset& text) {
  std::vector<std::pair<int64_t, std::vector<int32_t>>> found;
  DocumentReader reader(text);
  for (;;) {
    const absl::StatusOr<absl::optional<Document>> next = reader.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !next->has_value()) return found;
    const TokenDataset& document = (*next)->text;
    EXPECT_TRUE(document.ends().has_value() && document.ends()->mask_loss);
    std::vector<int32_t> tokens(static_cast<size_t>(document.tokens()));
    EXPECT_TRUE(document.Parts()[0].file->Read(0, 0, absl::MakeSpan(tokens)).ok());
    EXPECT_EQ((document.tokens() - 1) % document.seq_length(), 0);
    found.push_back({(*next)->number, std::move(tokens)});
  }
}

TEST(DocumentReader, FillsUpWithEnds) {
  const auto found = Read(TextOf({{1, 2, 3, 9, 9, 4, 9, 5, 6, 7, 8, 5, 9}}, 4));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].first, 0);
  EXPECT_THAT(found[0].second, ElementsAre(1, 2, 3, 9, 9));
  EXPECT_EQ(found[1].first, 2);  // document 1 is an end alone
  EXPECT_THAT(found[1].second, ElementsAre(4, 9, 9, 9, 9));
  EXPECT_EQ(found[2].first, 3);
  EXPECT_THAT(found[2].second, ElementsAre(5, 6, 7, 8, 5, 9, 9, 9, 9));
}

TEST(DocumentReader, EndsWithEachFile) {
  const auto found = Read(TextOf({{1, 2, 3}, {4, 5, 9, 6}, {7, 7, 7, 9}}, 2));
  ASSERT_EQ(found.size(), 3u);  // {6} has no target
  EXPECT_THAT(found[0].second, ElementsAre(1, 2, 3));
  EXPECT_THAT(found[1].second, ElementsAre(4, 5, 9));
  EXPECT_EQ(found[2].first, 3);
  EXPECT_THAT(found[2].second, ElementsAre(7, 7, 7, 9, 9));
}

// More than is read at once.
TEST(DocumentReader, ReadsLongDocuments) {
  std::vector<int32_t> tokens(200000);
  std::iota(tokens.begin(), tokens.end(), 10);
  std::vector<int32_t> file = tokens;
  file.push_back(kEnd);
  file.insert(file.end(), tokens.begin(), tokens.begin() + 100);
  const auto found = Read(TextOf({file}, 100));
  ASSERT_EQ(found.size(), 2u);
  ASSERT_GE(found[0].second.size(), tokens.size() + 1);
  EXPECT_THAT(std::vector<int32_t>(found[0].second.begin(), found[0].second.begin() + 200000),
              ElementsAreArray(tokens));
  EXPECT_EQ(found[0].second[200000], kEnd);
  EXPECT_EQ(found[1].second.size(), 101u);
}

}  // namespace
}  // namespace mgc
