#include "runtime/data/megatron_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/data.h"
#include "runtime/data/testing/npy_text.h"
#include "runtime/data/tokens/token_file_writer.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSeqLength = 7;

std::string Path(absl::string_view name) { return absl::StrCat(::testing::TempDir(), "/", name); }

template <typename Number>
void WriteNpy(absl::string_view name, absl::string_view descr, absl::string_view shape,
              const std::vector<Number>& values) {
  ASSERT_TRUE(WriteFileAtomically(Path(name), NpyText(descr, shape, values)).ok());
}

// Documents of 1 to 20 tokens, all different, two epochs of them shuffled, and what Megatron-LM
// would keep of them.
class MegatronOrderTest : public ::testing::Test {
 protected:
  MegatronOrderTest() {
    std::mt19937 dice(kSeed);
    auto writer = TokenFileWriter::Create(Path("tokens"), TokenFormat::kMegatron, 30000);
    std::vector<std::vector<int32_t>> documents;
    int32_t next = 0;
    for (int i = 0; i < 60; ++i) {
      documents.emplace_back(1 + dice() % 20);
      std::iota(documents.back().begin(), documents.back().end(), next);
      next += static_cast<int32_t>(documents.back().size());
      EXPECT_TRUE((*writer)->Append(documents.back()).ok());
    }
    EXPECT_TRUE((*writer)->Finish().ok());
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<int32_t> order(documents.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), dice);
      listed_.insert(listed_.end(), order.begin(), order.end());
    }
    for (size_t place = 0; place < listed_.size(); ++place) {
      const std::vector<int32_t>& document = documents[static_cast<size_t>(listed_[place])];
      for (size_t offset = 0; offset < document.size(); ++offset) {
        if (all_.size() % kSeqLength == 0) {
          begins_.push_back(static_cast<int32_t>(place));
          begins_.push_back(static_cast<int32_t>(offset));
        }
        all_.push_back(document[offset]);
      }
    }
    shuffle_.resize((all_.size() - 1) / kSeqLength);
    begins_.resize(2 * (shuffle_.size() + 1));
    std::iota(shuffle_.begin(), shuffle_.end(), 0);
    std::shuffle(shuffle_.begin(), shuffle_.end(), dice);
    Write();
  }

  void Write() const {
    WriteNpy("o-document_index.npy", "<i4", absl::StrCat(listed_.size(), ","), listed_);
    WriteNpy("o-sample_index.npy", "<i4", absl::StrCat(begins_.size() / 2, ", 2"), begins_);
    WriteNpy("o-shuffle_index.npy", "<u4", absl::StrCat(shuffle_.size(), ","), shuffle_);
  }

  absl::StatusOr<std::shared_ptr<const MegatronOrder>> Open(int64_t seq_length = kSeqLength,
                                                            absl::string_view name = "o") const {
    return MegatronOrder::Open(Path(name), *TokenFile::Open(Path("tokens")), seq_length);
  }

  std::string Why(int64_t seq_length = kSeqLength) const {
    Write();
    return std::string(Open(seq_length).status().message());
  }

  static constexpr uint32_t kSeed = 20240817;
  std::vector<int32_t> listed_, begins_;
  std::vector<uint32_t> shuffle_;
  std::vector<int32_t> all_;  // the documents' tokens in the order of the list
};

TEST_F(MegatronOrderTest, SamplesAreThoseOfTheList) {
  const auto order = Open();
  ASSERT_TRUE(order.ok()) << order.status();
  const auto by_file = Open(kSeqLength, "o-shuffle_index.npy");
  ASSERT_TRUE(by_file.ok()) << by_file.status();
  const TokenDataset data = TokenDataset::InOrder({{*order}}, nullptr, kSeqLength);
  EXPECT_EQ(data.samples_per_epoch(), static_cast<int64_t>(shuffle_.size()));
  for (int64_t sample = 0; sample < 2 * data.samples_per_epoch(); ++sample) {
    const size_t row = shuffle_[static_cast<size_t>(sample) % shuffle_.size()];
    for (const int64_t from : {0, 1, 3}) {
      std::vector<int32_t> tokens(static_cast<size_t>(from == 3 ? 2 : kSeqLength));
      ASSERT_TRUE(data.ReadSample(sample, from, 30000, absl::MakeSpan(tokens)).ok());
      const auto expected = all_.begin() + static_cast<int64_t>(row) * kSeqLength + from;
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), expected)) << sample << " " << from;
    }
  }
  EXPECT_FALSE(data.HoldBackTail(1).ok());
}

TEST_F(MegatronOrderTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(Why(kSeqLength + 1), HasSubstr("has 8 tokens, and a sample of sequence length 8"));
  const size_t first = shuffle_[0];
  shuffle_[0] = 100000;
  EXPECT_THAT(Why(), HasSubstr("o-shuffle_index.npy: row 0 has 100000, which is not below"));
  shuffle_[0] = static_cast<uint32_t>(first);
  begins_[2 * first] = -1;
  EXPECT_THAT(Why(), HasSubstr(absl::StrCat("o-sample_index.npy: row ", first)));
  begins_[2 * first] = 0;
  begins_[2 * first + 1] = 21;
  EXPECT_THAT(Why(), HasSubstr(" of a sequence of "));
  begins_.resize(4);
  EXPECT_THAT(Why(), HasSubstr("has 2 rows, where one more than the samples stands"));
  EXPECT_THAT(std::string(Open(kSeqLength, "no").status().message()),
              HasSubstr("no-document_index.npy"));
  WriteNpy("o-document_index.npy", "<f4", "3,", std::vector<float>(3));
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("its type is `<f4`; of indices"));
  WriteNpy("o-document_index.npy", "<i4", "3, 1", std::vector<int32_t>(3));
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("it has 2 dims"));
  WriteNpy("o-document_index.npy", "<i4", "4,", std::vector<int32_t>(3));
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("lie 12 bytes, and 4 rows take 4 each"));
  EXPECT_THAT(
      std::string(
          MegatronOrder::Open(Path("o"), TokenFile::FromBytes("abc", "abc"), 1).status().message()),
      HasSubstr("abc is no pair of Megatron-LM's"));
}

}  // namespace
}  // namespace mgc
