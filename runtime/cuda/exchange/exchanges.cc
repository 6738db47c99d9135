#include "runtime/cuda/exchange/exchanges.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/cuda/api.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/cuda/exchange/exchange_table.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kCellBytes = 8192;  // two vectors for each thread of a block
constexpr int64_t kVectorBytes = 16;

using IssueTable = int (*)(Stream, const ExchangeTable&);

template <class T>
IssueTable IssueTerms(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduceMax ? IssueMaxima<T> : IssueSums<T>;
}

bool Reduces(const Exchange& x) {
  return (IsAllReduce(x.kind) || x.kind == CollectiveKind::kReduceScatter) && x.piece.size() > 1;
}

// Null for a size of elements that there is none for.
IssueTable IssueCopiesOf(int64_t bytes) {
  if (bytes == sizeof(uint16_t)) return IssueCopies<uint16_t>;
  if (bytes == sizeof(uint32_t)) return IssueCopies<uint32_t>;
  if (bytes == sizeof(uint64_t)) return IssueCopies<uint64_t>;
  return nullptr;
}

// The launch that serves an exchange; null where none does.
IssueTable IssueOf(const Exchange& x) {
  if (!Reduces(x)) return IssueCopiesOf(SizeOf(x.dtype));
  switch (x.dtype) {
    case DType::kF32:
      return IssueTerms<float>(x.kind);
    case DType::kF64:
      return IssueTerms<double>(x.kind);
    case DType::kI64:
      return IssueTerms<int64_t>(x.kind);
    case DType::kBF16:
      return IssueTerms<Bfloat16>(x.kind);
    case DType::kF16:
      return IssueTerms<Float16>(x.kind);
    case DType::kI8:  // never summed
      break;
  }
  return nullptr;
}

bool IsIssuable(const Exchange& x) {
  return Cells(x).served() && x.piece.size() <= kMostMembers && IssueOf(x) != nullptr;
}

// Threads for each cell, as a power of two: one for each vector where rows lie as vectors do.
int16_t LanesLog2(const CellGeometry& cells, int64_t element_bytes) {
  const int64_t run = std::min(cells.run, cells.cell);
  const bool vectors = cells.run * element_bytes % kVectorBytes == 0 || run == cells.cell;
  const int64_t accesses = vectors ? run * element_bytes / kVectorBytes : run;
  int16_t log2 = 0;
  while (1 << log2 < std::min<int64_t>(accesses, kExchangeBlock)) ++log2;
  return log2;
}

// Exchanges until their launch.
class Batch {
 public:
  explicit Batch(Stream stream) : stream_(stream) {}

  // Of one exchange with the tiles of all its senders and receivers.
  int Add(IssueTable issue, const CellGeometry& cells, int64_t element_bytes,
          absl::Span<const int> piece, absl::Span<const char* const> inputs,
          absl::Span<char* const> outputs) {
    const auto addresses = static_cast<int>(inputs.size() + outputs.size());
    if (issue != issue_ || table_.exchanges == kExchangesPerTable ||
        addresses_ + addresses > kAddressesPerTable) {
      if (const int error = Flush(); error != 0) return error;
    }
    issue_ = issue;
    ExchangeEntry& entry = table_.exchange[table_.exchanges++];
    entry.cells = cells;
    entry.first_unit = table_.units;
    entry.lanes_log2 = LanesLog2(cells, element_bytes);
    std::copy(piece.begin(), piece.end(), entry.piece);
    const int64_t at_a_time = kExchangeBlock >> entry.lanes_log2;
    table_.units += (cells.count + at_a_time - 1) / at_a_time;
    entry.address_bits = 0;
    entry.inputs = static_cast<int16_t>(addresses_);
    entry.senders = static_cast<int16_t>(inputs.size());
    for (const char* input : inputs) Enter(const_cast<char*>(input), &entry);
    entry.outputs = static_cast<int16_t>(addresses_);
    entry.receivers = static_cast<int16_t>(outputs.size());
    for (char* output : outputs) Enter(output, &entry);
    return 0;
  }

  int Flush() {
    const int error = table_.units == 0 ? 0 : issue_(stream_, table_);
    table_.exchanges = 0;
    table_.units = 0;
    addresses_ = 0;
    return error;
  }

 private:
  void Enter(char* address, ExchangeEntry* entry) {
    table_.address[addresses_++] = address;
    entry->address_bits |=
        static_cast<int32_t>(reinterpret_cast<uintptr_t>(address) % kVectorBytes);
  }

  Stream stream_;
  IssueTable issue_ = nullptr;
  int addresses_ = 0;
  ExchangeTable table_;
};

// Of the members [first, last): their pieces lie from `pieces` on.
int AddPieces(const PieceMove& move, size_t first, size_t last, char* pieces, Batch* batch) {
  const int64_t count = static_cast<int64_t>(last - first);
  CellGeometry cells;
  cells.pattern = move.joins ? CellPattern::kGather : CellPattern::kScatter;
  cells.whole = move.whole;
  cells.room = move.room;
  cells.inner = move.inner;
  cells.members = static_cast<int32_t>(count);
  cells.cell = kCellBytes / move.element_bytes;
  cells.run = move.room * move.inner;
  cells.Cut(move.outer * count);
  char* each[kMostMembers];
  for (int64_t m = 0; m < count; ++m) {
    each[m] = pieces + m * move.outer * cells.run * move.element_bytes;
  }
  const absl::Span<char* const> all(each, static_cast<size_t>(count));
  const absl::Span<char* const> tile(&move.tile, 1);
  return batch->Add(IssueCopiesOf(move.element_bytes), cells, move.element_bytes,
                    move.piece.subspan(first, last - first), move.joins ? all : tile,
                    move.joins ? tile : all);
}

}  // namespace

absl::Status CheckIssuable(const Exchange& exchange) {
  if (exchange.piece.size() > kMostMembers) {
    return absl::UnimplementedError(
        absl::StrCat(NameOf(exchange.kind), " between ", exchange.piece.size(),
                     " ranks of one GPU; at most ", kMostMembers, " may share one"));
  }
  return IsIssuable(exchange) ? absl::OkStatus() : CheckServed(exchange);
}

int IssueExchanges(Stream stream, absl::Span<const TiledExchange> exchanges) {
  for (const TiledExchange& tiled : exchanges) {
    if (!IsIssuable(*tiled.exchange)) return cudaErrorInvalidValue;
  }
  Batch batch(stream);
  for (const TiledExchange& tiled : exchanges) {
    const Exchange& x = *tiled.exchange;
    const int64_t bytes = SizeOf(x.dtype);
    const int error = batch.Add(IssueOf(x), GeometryOf(x, kCellBytes / bytes), bytes, x.piece,
                                tiled.inputs, tiled.outputs);
    if (error != 0) return error;
  }
  return batch.Flush();
}

int IssuePieceMoves(Stream stream, absl::Span<const PieceMove> moves) {
  Batch batch(stream);
  for (const PieceMove& move : moves) {
    const int64_t piece_bytes = move.outer * move.room * move.inner * move.element_bytes;
    for (size_t first = 0; first < move.piece.size(); first += kMostMembers) {
      const size_t last = std::min(first + kMostMembers, move.piece.size());
      char* const pieces = move.pieces + static_cast<int64_t>(first) * piece_bytes;
      if (const int error = AddPieces(move, first, last, pieces, &batch); error != 0) return error;
    }
  }
  return batch.Flush();
}

}  // namespace mgc::cuda
