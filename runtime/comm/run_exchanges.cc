#include "runtime/comm/run_exchanges.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr int64_t kHandOver = 2;          // units worth handing to another thread
constexpr int64_t kBlock = 1024;          // elements summed at a time: they stay in the first cache
constexpr int64_t kMostElementBytes = 8;  // of any type

// The work of an exchange in units of about kCellElements elements.
struct Units {
  explicit Units(const Exchange& exchange)
      : cells(exchange),
        per_unit(std::max<int64_t>(1, kCellElements / std::max<int64_t>(cells.elements(), 1))),
        count((cells.count() + per_unit - 1) / per_unit) {}

  Cells cells;
  int64_t per_unit;
  int64_t count;
};

// A block of a cell that takes several terms: `count` elements, `behind` its begin.
void Sum(const TiledExchange& tiled, const Arithmetic& arithmetic, const Cell& cell, int64_t behind,
         int64_t count) {
  alignas(64) char sum[kBlock * kMostElementBytes];
  alignas(64) char rounded[kBlock * kMostElementBytes];
  arithmetic.add(nullptr, tiled.inputs, cell.in + behind, count, sum);
  if (arithmetic.round != nullptr) arithmetic.round(sum, count, rounded);
  Deliver(tiled, cell, {cell.to_begin, cell.to_end}, behind, count, arithmetic.narrow_bytes,
          arithmetic.round != nullptr ? rounded : sum);
}

}  // namespace

void RunCell(const TiledExchange& tiled, const Cells& cells, const Cell& cell) {
  const int64_t bytes = cells.element_bytes();
  const MemberRange receivers = {cell.to_begin, cell.to_end};
  if (cell.from_end - cell.from_begin == 1) {
    Deliver(tiled, cell, receivers, 0, cell.count, bytes,
            tiled.inputs[static_cast<size_t>(cell.from_begin)] + cell.in * bytes);
  } else {
    for (int64_t at = 0; at < cell.count; at += kBlock) {
      Sum(tiled, *cells.arithmetic(), cell, at, std::min(kBlock, cell.count - at));
    }
  }
  DeliverZeros(tiled, cell, receivers, bytes);
}

absl::Status CheckServed(const Exchange& exchange) {
  if (Cells(exchange).served()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "no exchange between ranks does ", NameOf(exchange.kind), " of ", NameOf(exchange.dtype)));
}

absl::Status RunExchanges(absl::Span<const TiledExchange> exchanges, Parallel& parallel) {
  int64_t total = 0;
  for (const TiledExchange& tiled : exchanges) {
    const Units units(*tiled.exchange);
    if (!units.cells.served()) return CheckServed(*tiled.exchange);
    total += units.count;
  }
  parallel.For(total, kHandOver, [exchanges](int64_t begin, int64_t end) {
    int64_t first = 0;  // unit of the exchange
    for (const TiledExchange& tiled : exchanges) {
      const Units units(*tiled.exchange);
      const int64_t from = std::max<int64_t>(begin - first, 0);
      const int64_t to = std::min(end - first, units.count);
      for (int64_t c = from * units.per_unit;
           c < std::min(to * units.per_unit, units.cells.count()); ++c) {
        RunCell(tiled, units.cells, units.cells.At(c));
      }
      first += units.count;
    }
  });
  return absl::OkStatus();
}

}  // namespace mgc
