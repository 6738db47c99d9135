#include "runtime/comm/testing/heap_library.h"

#include "graph/base/status.h"
#include "runtime/comm/arithmetic.h"

namespace mgc {

void HeapSums::Bring(const LibraryGroupKey& key, uint64_t number, int self, DType dtype, bool max,
                     int64_t count, const char* from) {
  const int64_t bytes = count * ArithmeticOf(dtype, max)->wide_bytes;
  MGC_CHECK(bytes <= kLibraryPieceBytes) << bytes << " bytes";
  std::lock_guard<std::mutex> lock(mutex_);
  Piece& piece = pieces_[NameOf(key, number)];
  const bool is_first = piece.terms.empty();
  MGC_CHECK(is_first || (piece.dtype == dtype && piece.max == max && piece.count == count))
      << "processes bring different pieces";
  piece.dtype = dtype;
  piece.max = max;
  piece.count = count;
  MGC_CHECK(piece.terms.emplace(self, std::vector<char>(from, from + bytes)).second) << "twice";
}

bool HeapSums::Take(const LibraryGroupKey& key, uint64_t number, char* to) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Piece& piece = pieces_[NameOf(key, number)];
  if (piece.terms.size() < key.processes.size()) return false;
  std::vector<const char*> terms;
  for (auto it = piece.terms.rbegin(); it != piece.terms.rend(); ++it) {
    terms.push_back(it->second.data());
  }
  const bool is_narrow = SizeOf(piece.dtype) < SizeOf(DType::kF32);
  ArithmeticOf(is_narrow ? DType::kF32 : piece.dtype, piece.max)
      ->add(nullptr, terms, 0, piece.count, to);
  return true;
}

class HeapLibrary::Group : public LibraryGroup {
 public:
  Group(HeapSums& sums, int self, LibraryGroupKey key)
      : sums_(sums),
        self_(self),
        key_(std::move(key)),
        piece_(static_cast<size_t>(kLibraryPieceBytes)),
        sum_(static_cast<size_t>(kLibraryPieceBytes)) {}

  char* Room() override { return started_ - released_ < kLibraryPieces ? piece_.data() : nullptr; }
  void Start(DType dtype, bool max, int64_t count) override {
    sums_.Bring(key_, started_++, self_, dtype, max, count, piece_.data());
  }
  const char* Result() override {
    const bool is_here = released_ < started_ && sums_.Take(key_, released_, sum_.data());
    return is_here ? sum_.data() : nullptr;
  }
  void Release() override { ++released_; }

 private:
  HeapSums& sums_;
  const int self_;
  const LibraryGroupKey key_;
  std::vector<char> piece_, sum_;
  uint64_t started_ = 0;
  uint64_t released_ = 0;
};

absl::Status HeapLibrary::Open(absl::Span<const LibraryGroupKey> groups) {
  for (const LibraryGroupKey& key : groups) {
    groups_.push_back(std::make_shared<Group>(sums_, self_, key));
  }
  return absl::OkStatus();
}

LibraryGroup& HeapLibrary::group(size_t place) { return *groups_[place]; }

}  // namespace mgc
