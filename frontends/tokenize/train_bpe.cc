#include "frontends/tokenize/train_bpe.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <utility>

#include "frontends/tokenize/byte_alphabet.h"

namespace mgc {
namespace {

constexpr char kEndOfDocument[] = "<|endoftext|>";

using Pair = std::pair<TokenId, TokenId>;

struct Word {
  std::vector<TokenId> tokens;
  int64_t count;
};

// A pair with the count that it had when it was put in the queue.
struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {  // the greatest is taken first
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

// Where a pair occurs.
struct Occurrences {
  int64_t count = 0;
  std::vector<size_t> words;  // ascending, each once; words that have lost it may be among them
};

class BpeTrainer {
 public:
  explicit BpeTrainer(const WordCounts& counts) {
    MakeAlphabet();
    std::vector<std::pair<absl::string_view, int64_t>> words(counts.words().begin(),
                                                             counts.words().end());
    std::sort(words.begin(), words.end());
    words_.reserve(words.size());
    for (const auto& [text, count] : words) AddWord(text, count);
    for (const auto& [pair, occurrences] : pairs_) queue_.push({occurrences.count, pair});
  }

  void Run(int64_t vocabulary_size) {
    while (static_cast<int64_t>(parts_.tokens.size()) < vocabulary_size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t count = pairs_[best.pair].count;
      if (count != best.count) {
        if (count > 0) queue_.push({count, best.pair});
        continue;
      }
      if (count > 0) MergeEverywhere(best.pair);
    }
  }

  TokenizerParts Take() { return std::move(parts_); }

 private:
  void MakeAlphabet() {
    AddedToken end;
    end.id = 0;
    end.content = kEndOfDocument;
    end.special = true;
    parts_.added.push_back(end);
    parts_.end_of_document = 0;
    parts_.tokens.emplace_back();
    std::array<int, 256> bytes = {};
    std::iota(bytes.begin(), bytes.end(), 0);
    std::sort(bytes.begin(), bytes.end(), [](int a, int b) {
      return SpellingOf(static_cast<unsigned char>(a)) < SpellingOf(static_cast<unsigned char>(b));
    });
    for (const int byte : bytes) {
      of_byte_[static_cast<size_t>(byte)] = TokenOf(std::string(1, static_cast<char>(byte)));
    }
  }

  // The token of some bytes, a new one where there is none.
  TokenId TokenOf(const std::string& bytes) {
    const auto id = static_cast<TokenId>(parts_.tokens.size());
    const auto [entry, is_new] = ids_.try_emplace(bytes, id);
    if (is_new) parts_.tokens.push_back(bytes);
    return entry->second;
  }

  void AddWord(absl::string_view text, int64_t count) {
    Word word;
    word.count = count;
    word.tokens.reserve(text.size());
    for (const char byte : text) {
      word.tokens.push_back(of_byte_[static_cast<unsigned char>(byte)]);
    }
    for (size_t i = 1; i < word.tokens.size(); ++i) {
      Count({word.tokens[i - 1], word.tokens[i]}, words_.size(), count);
    }
    words_.push_back(std::move(word));
  }

  void Count(Pair pair, size_t word, int64_t count) {
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += count;
    if (count > 0 && (occurrences.words.empty() || occurrences.words.back() != word)) {
      occurrences.words.push_back(word);
    }
  }

  void MergeEverywhere(Pair pair) {
    const std::string bytes = parts_.tokens[static_cast<size_t>(pair.first)] +
                              parts_.tokens[static_cast<size_t>(pair.second)];
    const TokenId merged = TokenOf(bytes);
    parts_.merges.push_back({pair.first, pair.second, merged});
    std::vector<size_t> in_words = std::move(pairs_[pair].words);
    pairs_.erase(pair);
    risen_.clear();
    for (const size_t word : in_words) MergeIn(word, pair, merged);
    std::sort(risen_.begin(), risen_.end());
    risen_.erase(std::unique(risen_.begin(), risen_.end()), risen_.end());
    for (const Pair& risen : risen_) {
      const int64_t count = pairs_[risen].count;
      if (count > 0) queue_.push({count, risen});
    }
  }

  // Merges from left to right, and counts the pairs of the word anew.
  void MergeIn(size_t index, Pair pair, TokenId merged) {
    Word& word = words_[index];
    std::vector<TokenId>& tokens = word.tokens;
    size_t kept = 0;
    for (size_t i = 0; i < tokens.size(); ++kept) {
      const bool here = i + 1 < tokens.size() && Pair(tokens[i], tokens[i + 1]) == pair;
      if (!here) {
        tokens[kept] = tokens[i++];
        continue;
      }
      if (kept > 0) {
        Fall({tokens[kept - 1], pair.first}, index);
        Rise({tokens[kept - 1], merged}, index);
      }
      i += 2;
      if (i < tokens.size()) {
        Fall({pair.second, tokens[i]}, index);
        Rise({merged, tokens[i]}, index);
      }
      tokens[kept] = merged;
    }
    tokens.resize(kept);
  }

  void Rise(Pair pair, size_t word) {
    Count(pair, word, words_[word].count);
    risen_.push_back(pair);
  }

  void Fall(Pair pair, size_t word) {
    const auto found = pairs_.find(pair);  // the pair that is being merged is there no more
    if (found != pairs_.end()) found->second.count -= words_[word].count;
  }

  TokenizerParts parts_;
  std::array<TokenId, 256> of_byte_ = {};
  absl::flat_hash_map<std::string, TokenId> ids_;
  std::vector<Word> words_;
  absl::flat_hash_map<Pair, Occurrences> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> risen_;  // of the merge at hand
};

}  // namespace

void WordCounts::Add(absl::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = WordEnd(pattern_, text, begin);
    const absl::string_view word = text.substr(begin, end - begin);
    const auto found = words_.find(word);
    if (found != words_.end()) {
      ++found->second;
    } else {
      words_.emplace(word, 1);
    }
    begin = end;
  }
}

Tokenizer TrainBpe(const WordCounts& counts, int64_t vocabulary_size) {
  BpeTrainer trainer(counts);
  trainer.Run(vocabulary_size);
  TokenizerParts parts = trainer.Take();
  parts.pattern = counts.pattern();
  return Tokenizer(std::move(parts));
}

}  // namespace mgc
