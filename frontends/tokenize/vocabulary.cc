#include "frontends/tokenize/vocabulary.h"

#include <algorithm>

#include "graph/base/status.h"

namespace mgc {

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::vector<Merge> merges)
    : tokens_(std::move(tokens)), merges_(std::move(merges)) {
  ids_.reserve(tokens_.size());
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (!tokens_[id].empty()) ids_.emplace(tokens_[id], static_cast<TokenId>(id));
  }
  for (size_t byte = 0; byte < of_byte_.size(); ++byte) {
    of_byte_[byte] = Find(std::string(1, static_cast<char>(byte)));
    MGC_CHECK(of_byte_[byte] != kNoToken) << "no token for byte " << byte;
  }
  ranks_.reserve(merges_.size());
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const Merge& merge = merges_[rank];
    ranks_.emplace(std::make_pair(merge.left, merge.right), static_cast<int32_t>(rank));
  }
}

TokenId Vocabulary::Find(absl::string_view bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? kNoToken : found->second;
}

int32_t Vocabulary::RankOf(TokenId left, TokenId right) const {
  const auto found = ranks_.find({left, right});
  return found == ranks_.end() ? kNoRank : found->second;
}

void WordMerger::Offer(int32_t place) {
  Symbol& symbol = symbols_[static_cast<size_t>(place)];
  symbol.rank = Vocabulary::kNoRank;
  if (symbol.next < 0) return;
  symbol.rank = vocabulary_.RankOf(symbol.token, symbols_[static_cast<size_t>(symbol.next)].token);
  if (symbol.rank == Vocabulary::kNoRank) return;
  heap_.push_back({symbol.rank, place});
  std::push_heap(heap_.begin(), heap_.end());
}

void WordMerger::MergeWithNext(int32_t place) {
  Symbol& left = symbols_[static_cast<size_t>(place)];
  Symbol& right = symbols_[static_cast<size_t>(left.next)];
  left.token = vocabulary_.merges()[static_cast<size_t>(left.rank)].merged;
  left.next = right.next;
  right.rank = Vocabulary::kNoRank;  // what the heap holds of it is stale
  if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].previous = place;
  Offer(place);
  if (left.previous >= 0) Offer(left.previous);
}

void WordMerger::Append(absl::string_view word, std::vector<TokenId>* tokens) {
  const auto size = static_cast<int32_t>(word.size());
  symbols_.clear();
  symbols_.reserve(word.size());
  heap_.clear();
  for (int32_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<size_t>(i)]);
    symbols_.push_back({vocabulary_.OfByte(byte), i - 1, i + 1 < size ? i + 1 : -1, 0});
  }
  for (int32_t i = 0; i < size; ++i) Offer(i);
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    // A rank names one pair: as long as it is the symbol's, both are still there.
    if (symbols_[static_cast<size_t>(best.place)].rank == best.rank) MergeWithNext(best.place);
  }
  for (int32_t i = size > 0 ? 0 : -1; i >= 0; i = symbols_[static_cast<size_t>(i)].next) {
    tokens->push_back(symbols_[static_cast<size_t>(i)].token);
  }
}

}  // namespace mgc
