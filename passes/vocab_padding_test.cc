#include "passes/vocab_padding.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "passes/testing/vectors.h"

namespace mgc {
namespace {

TEST(VocabPaddingTest, MatchesMegatron) {
  for (const std::vector<std::string>& row : ReadVectorRows("vocab_padding.txt")) {
    SCOPED_TRACE(absl::StrJoin(row, " "));
    ASSERT_EQ(row.size(), 4u);
    const int64_t tp = ToInt(row[2]);
    EXPECT_EQ(VocabRowsPerRank(ToInt(row[0]), tp, ToInt(row[1])) * tp, ToInt(row[3]));
  }
}

TEST(VocabPaddingTest, ValidRowsAddUpToTheVocabulary) {
  for (int64_t vocab = 1; vocab <= 40; ++vocab) {
    for (int64_t tp = 1; tp <= 9; ++tp) {
      const int64_t rows = VocabRowsPerRank(vocab, tp);
      int64_t valid = 0;
      for (int64_t rank = 0; rank < tp; ++rank) valid += ValidVocabRows(vocab, rows, rank);
      EXPECT_EQ(valid, vocab) << "tp " << tp;
      EXPECT_LT(rows * tp - vocab, tp);
    }
  }
  // Five rows over four ranks: two each, the third rank has one, the last none.
  EXPECT_EQ(ValidVocabRows(5, VocabRowsPerRank(5, 4), 2), 1);
  EXPECT_EQ(ValidVocabRows(5, VocabRowsPerRank(5, 4), 3), 0);
}

TEST(VocabPaddingTest, HugeSizesDoNotOverflow) {
  EXPECT_EQ(VocabRowsPerRank(INT64_MAX, 1, 1), INT64_MAX);
  EXPECT_EQ(VocabRowsPerRank(5, INT64_MAX, INT64_MAX), INT64_MAX);
}

}  // namespace
}  // namespace mgc
