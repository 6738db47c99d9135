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
  }
  return nullptr;
}

bool IsIssuable(const Exchange& x) {
  return Cells(x).served() && x.piece.size() <= kMostMembers && IssueOf(x) != nullptr;
}

// Threads for each cell, as a power of two: one for each vector where rows lie as vectors do.
uint8_t LanesLog2(const CellGeometry& cells, int64_t element_bytes) {
  const int64_t run = std::min(cells.run, cells.cell);
  const bool vectors = cells.run * element_bytes % kVectorBytes == 0 || run == cells.cell;
  const int64_t accesses = vectors ? run * element_bytes / kVectorBytes : run;
  uint8_t log2 = 0;
  while (1 << log2 < std::min<int64_t>(accesses, kExchangeBlock)) ++log2;
  return log2;
}

// Exchanges until their launch.
class Batch {
 public:
  explicit Batch(Stream stream) : stream_(stream) {}

  int Add(const TiledExchange& tiled) {
    const IssueTable issue = IssueOf(*tiled.exchange);
    const int addresses = 2 * static_cast<int>(tiled.exchange->piece.size());
    if (issue != issue_ || table_.exchanges == kExchangesPerTable ||
        addresses_ + addresses > kAddressesPerTable) {
      if (const int error = Flush(); error != 0) return error;
    }
    issue_ = issue;
    Enter(tiled);
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
  void Enter(const TiledExchange& tiled) {
    const Exchange& x = *tiled.exchange;
    const int64_t bytes = SizeOf(x.dtype);
    ExchangeEntry& entry = table_.exchange[table_.exchanges++];
    entry.cells = GeometryOf(x, kCellBytes / bytes);
    entry.first_unit = table_.units;
    entry.lanes_log2 = LanesLog2(entry.cells, bytes);
    std::copy(x.piece.begin(), x.piece.end(), entry.piece);
    const int64_t at_a_time = kExchangeBlock >> entry.lanes_log2;
    table_.units += (entry.cells.count + at_a_time - 1) / at_a_time;
    entry.address_bits = 0;
    entry.inputs = static_cast<int16_t>(addresses_);
    for (const char* input : tiled.inputs) Enter(const_cast<char*>(input), &entry);
    entry.outputs = static_cast<int16_t>(addresses_);
    for (char* output : tiled.outputs) Enter(output, &entry);
  }
  void Enter(char* address, ExchangeEntry* entry) {
    table_.address[addresses_++] = address;
    entry->address_bits |=
        static_cast<int32_t>(reinterpret_cast<uintptr_t>(address) % kVectorBytes);
  }

  const Stream stream_;
  IssueTable issue_ = nullptr;
  int addresses_ = 0;
  ExchangeTable table_;
};

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
    if (const int error = batch.Add(tiled); error != 0) return error;
  }
  return batch.Flush();
}

}  // namespace mgc::cuda
