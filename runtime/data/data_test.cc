#include "runtime/data/data.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> SampleOf(const TokenDataset& data, int64_t index) {
  std::vector<int32_t> tokens(data.seq_length() + 1);
  EXPECT_TRUE(data.ReadSample(index, 0, 0, absl::MakeSpan(tokens)).ok());
  return tokens;
}

TEST(TokenDataset, SamplesOverlapByOneByteAndWrap) {
  TokenDataset data = TokenDataset::FromBytes("abcdefgh", 3, "f").value();
  EXPECT_EQ(data.tokens(), 8);
  EXPECT_EQ(data.samples_per_epoch(), 2);
  EXPECT_THAT(SampleOf(data, 0), ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(SampleOf(data, 1), ElementsAre('d', 'e', 'f', 'g'));
  EXPECT_EQ(SampleOf(data, 2), SampleOf(data, 0));
  EXPECT_EQ(SampleOf(data, 1000000000001), SampleOf(data, 1));
}

TEST(TokenDataset, TokensAreUnsignedBytes) {
  TokenDataset data = TokenDataset::FromBytes("\xff\x80\n", 2, "f").value();
  EXPECT_THAT(SampleOf(data, 0), ElementsAre(255, 128, 10));
}

TEST(TokenDataset, EpochCountsAtTheEdges) {
  for (int64_t size = 5; size < 30; ++size) {
    TokenDataset data = TokenDataset::FromBytes(std::string(size, 'x'), 4, "f").value();
    EXPECT_EQ(data.samples_per_epoch(), (size - 1) / 4) << size;
  }
  EXPECT_EQ(TokenDataset::FromBytes("ab", 1, "f")->samples_per_epoch(), 1);
}

TEST(TokenDataset, TooShortNamesTheNumbers) {
  auto result = TokenDataset::FromBytes("abcd", 4, "f\n");
  EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
  EXPECT_EQ(result.status().message(),
            "f\\x0A is too short: it has 4 bytes, and one sample of sequence length 4 needs 4 + 1; "
            "use a longer file "
            "or a sequence length of at most 3");
  EXPECT_EQ(TokenDataset::FromBytes("", 1, "f").status().message(),
            "f is too short: it has 0 bytes, and one sample of sequence length 1 needs 1 + 1; "
            "use a longer file");
  EXPECT_FALSE(TokenDataset::FromBytes("abcd", 0, "f").ok());
}

TEST(TokenDataset, OpensFilesAndExplainsWhatIsNone) {
  std::string path = ::testing::TempDir() + "/data_test.txt";
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  EXPECT_THAT(SampleOf(TokenDataset::Open(path, 4).value(), 0),
              ElementsAre('h', 'e', 'l', 'l', 'o'));
  EXPECT_THAT(TokenDataset::Open(path, 5).status().message(), HasSubstr(path + " is too short"));
  EXPECT_TRUE(absl::IsNotFound(TokenDataset::Open(path + ".no", 4).status()));
  EXPECT_THAT(TokenDataset::Open(::testing::TempDir(), 4).status().message(),
              HasSubstr("directory"));
}

TEST(TokenDataset, HeldBackTailSharesNoByteWithTheRest) {
  TokenDataset data = TokenDataset::FromBytes("abcdefghijk", 3, "f").value();
  auto split = data.HoldBackTail(1).value();
  EXPECT_EQ(split.first.tokens(), 7);
  EXPECT_EQ(split.second.tokens(), 4);
  EXPECT_THAT(SampleOf(split.second, 0), ElementsAre('h', 'i', 'j', 'k'));
  EXPECT_THAT(SampleOf(split.first, 1), ElementsAre('d', 'e', 'f', 'g'));
  EXPECT_EQ(data.HoldBackTail(2)->first.samples_per_epoch(), 1);
  EXPECT_THAT(data.HoldBackTail(3).status().message(), HasSubstr("from 1 to 2 are possible"));
  EXPECT_FALSE(data.HoldBackTail(0).ok());
  EXPECT_FALSE(data.HoldBackTail(int64_t{1} << 62).ok());
}

TEST(TokenDataset, TailLimitIsExact) {
  for (int64_t size = 4; size < 40; ++size) {
    TokenDataset data = TokenDataset::FromBytes(std::string(size, 'x'), 3, "f").value();
    for (int64_t tail = 1; tail < 15; ++tail) {
      bool fits = size - (3 * tail + 1) >= 4;
      EXPECT_EQ(data.HoldBackTail(tail).ok(), fits) << size << " " << tail;
    }
  }
}

// A source of two files: no sample holds tokens of both, and the epoch has those of each.
TEST(TokenDataset, FilesOneBehindTheOther) {
  const auto part = [](const char* text) {
    auto file = TokenFile::FromBytes(text, "f");
    const int64_t tokens = file->tokens();
    return TokenPart{std::move(file), 0, tokens};
  };
  const TokenDataset data = *TokenDataset::Create({{{part("abcdef"), part("uvwxyz12")}}}, 2);
  EXPECT_EQ(data.samples_per_epoch(), 2 + 3);
  EXPECT_THAT(SampleOf(data, 1), ElementsAre('c', 'd', 'e'));
  EXPECT_THAT(SampleOf(data, 2), ElementsAre('u', 'v', 'w'));
  EXPECT_EQ(SampleOf(data, 5), SampleOf(data, 0));
  EXPECT_FALSE(data.is_aligned());
  const auto split = data.HoldBackTail(1);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(SampleOf(split->second, 0), ElementsAre('z', '1', '2'));
  EXPECT_EQ(split->first.samples_per_epoch(), 2 + 2);
  EXPECT_THAT(TokenDataset::Create({{{part("ab"), part("c")}}}, 2).status().message(),
              testing::AllOf(HasSubstr("has 2 bytes"), HasSubstr("has 1 bytes")));
}

TEST(TokenDataset, ShuffledEpochsHoldEverySampleOnce) {
  std::string bytes(101, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  const TokenDataset plain = *TokenDataset::FromBytes(bytes, 1, "f");
  const TokenDataset data = plain.Shuffled(5);
  std::vector<std::vector<int32_t>> epochs(2);
  for (int64_t i = 0; i < 200; ++i) epochs[i / 100].push_back(SampleOf(data, i)[0]);
  EXPECT_NE(epochs[0], epochs[1]);
  for (std::vector<int32_t>& epoch : epochs) {
    EXPECT_FALSE(std::is_sorted(epoch.begin(), epoch.end()));
    std::sort(epoch.begin(), epoch.end());
    for (int32_t i = 0; i < 100; ++i) EXPECT_EQ(epoch[i], i);
  }
  const auto split = data.HoldBackTail(10);
  EXPECT_THAT(SampleOf(split->second, 0), ElementsAre(90, 91)) << "a tail is never shuffled";
}

TEST(TokenDataset, SourcesAreBlended) {
  const auto source = [](const char* text, double weight) {
    auto file = TokenFile::FromBytes(text, text);
    const int64_t tokens = file->tokens();
    return TokenSource{{{std::move(file), 0, tokens}}, weight};
  };
  const TokenDataset data = *TokenDataset::Create({source("abc", 3), source("xyz", 1)}, 1);
  std::string firsts;
  for (int64_t i = 0; i < 8; ++i) firsts += static_cast<char>(SampleOf(data, i)[0]);
  EXPECT_EQ(firsts, "axbabyab") << "each begins again by itself";
  EXPECT_THAT(data.HoldBackTail(1).status().message(), HasSubstr("split them"));
}

TEST(TokenDataset, TokensOutsideOfTheVocabulary) {
  const TokenDataset data = *TokenDataset::FromBytes("abcz", 3, "f");
  std::vector<int32_t> tokens(3);
  EXPECT_TRUE(data.ReadSample(0, 0, 'd', absl::MakeSpan(tokens)).ok());
  EXPECT_EQ(data.ReadSample(0, 1, 'd', absl::MakeSpan(tokens)).message(),
            "f: token 3 is 122, outside the vocabulary of 100 (legal: 0 to 99)");
}

TEST(TokenDataset, AllFilesAreLookedAtBefore) {
  const auto part = [](const char* text, int64_t begin) {
    auto file = TokenFile::FromBytes(text, text);
    const int64_t tokens = file->tokens();
    return TokenPart{std::move(file), begin, tokens};
  };
  const TokenDataset data =
      *TokenDataset::Create({{{part("abcz", 0), part("zabc", 1)}}, {{part("xbcd", 0)}}}, 2);
  EXPECT_TRUE(data.CheckVocabulary(123).ok());
  EXPECT_THAT(std::string(data.CheckVocabulary(101).message()),
              testing::AllOf(HasSubstr("abcz: token 3 is 122"), HasSubstr("xbcd: token 0 is 120"),
                             testing::Not(HasSubstr("zabc"))))
      << "of a file only what belongs to the data";
}

// 100 GB that are not there: opening reads nothing of them.
TEST(TokenDataset, AHugeFileIsOpenedAtOnce) {
  const std::string path = ::testing::TempDir() + "/huge.bin";
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  constexpr int64_t kBytes = int64_t{100'000'000'000};
  ASSERT_EQ(truncate(path.c_str(), kBytes), 0);
  const TokenDataset data = TokenDataset::Open(path, 1024)->Shuffled(1);
  EXPECT_EQ(data.tokens(), kBytes / 2);
  EXPECT_EQ(SampleOf(data, data.samples_per_epoch() - 1), std::vector<int32_t>(1025));
  ASSERT_EQ(unlink(path.c_str()), 0);
}

}  // namespace
}  // namespace mgc
