#include "runtime/load/run_exchanges.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc {
namespace {

constexpr int64_t kBlock = 1024;  // elements summed at a time: they stay in the first cache
constexpr int64_t kUnit = 8192;   // elements of a unit of work
constexpr int64_t kHandOver = 2;  // units worth handing to another thread

template <typename T>
struct Plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct Larger {
  T operator()(T a, T b) const { return a > b ? a : b; }
};

// The type in which elements of T are summed.
template <typename T>
struct Summed {
  using Type = T;
  static T Widen(T x) { return x; }
  static T Round(T x) { return x; }
};
template <>
struct Summed<Bfloat16> {
  using Type = float;
  static float Widen(Bfloat16 x) { return ToFloat(x); }
  static Bfloat16 Round(float x) { return ToBfloat16(x); }
};
template <>
struct Summed<Float16> {
  using Type = float;
  static float Widen(Float16 x) { return ToFloat(x); }
  static Float16 Round(float x) { return ToFloat16(x); }
};

// out[i] = terms[0][at + i] op terms[1][at + i] op ..., for `count` <= kBlock elements, rounded
// once. Full blocks have a constant length, which lets the compiler use vectors.
template <typename T, template <typename> class Op>
void Reduce(absl::Span<const char* const> terms, int64_t at, int64_t count, T* __restrict out) {
  using Sum = typename Summed<T>::Type;
  alignas(64) Sum sum[kBlock];
  const auto for_each = [count](const auto& fn) {
    if (count == kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) fn(i);
    } else {
      for (int64_t i = 0; i < count; ++i) fn(i);
    }
  };
  for (size_t member = 0; member < terms.size(); ++member) {
    const T* __restrict term = reinterpret_cast<const T*>(terms[member]) + at;
    if (member == 0) {
      for_each([&](int64_t i) { sum[i] = Summed<T>::Widen(term[i]); });
    } else {
      for_each([&](int64_t i) { sum[i] = Op<Sum>()(sum[i], Summed<T>::Widen(term[i])); });
    }
  }
  for_each([&](int64_t i) { out[i] = Summed<T>::Round(sum[i]); });
}

// The members' tiles of an exchange and what part of the work is to be done: units [begin, end).
struct Work {
  const Exchange& x;
  absl::Span<const char* const> inputs;
  absl::Span<char* const> outputs;
  int64_t begin;
  int64_t end;
};

template <typename T, template <typename> class Op>
void AllReduce(const Work& work) {
  alignas(64) T sum[kBlock];
  const int64_t end = std::min(work.end * kUnit, work.x.whole);
  for (int64_t at = work.begin * kUnit; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    Reduce<T, Op>(work.inputs, at, count, sum);
    for (char* out : work.outputs) std::memcpy(out + at * sizeof(T), sum, count * sizeof(T));
  }
}

// The smallest pieces in which the work of an exchange is cut, and how many of them make a unit.
struct Cells {
  int64_t count;
  int64_t per_unit;

  // Cells of `size` elements.
  static Cells Of(int64_t count, int64_t size) {
    return {count, std::max<int64_t>(1, kUnit / std::max<int64_t>(size, 1))};
  }
  int64_t units() const { return (count + per_unit - 1) / per_unit; }
  // Calls fn for every cell of the units.
  template <typename Fn>
  void ForEach(const Work& work, const Fn& fn) const {
    const int64_t end = std::min(work.end * per_unit, count);
    for (int64_t cell = work.begin * per_unit; cell < end; ++cell) fn(cell);
  }
};

// One contiguous part of one piece: `count` elements at `in_piece` within the piece's tile and
// `in_whole` within the whole one; the first `valid` lie inside the whole.
struct Part {
  size_t member;
  int64_t in_piece;
  int64_t in_whole;
  int64_t count;
  int64_t valid;
};

int64_t PartsOfRun(const Exchange& x) { return (x.room * x.inner + kUnit - 1) / kUnit; }

// The parts of all members' pieces.
Cells PartCells(const Exchange& x) {
  const int64_t members = static_cast<int64_t>(x.piece.size());
  return Cells::Of(x.outer * members * PartsOfRun(x), std::min(x.room * x.inner, kUnit));
}

Part PartAt(const Exchange& x, int64_t cell) {
  const int64_t run = x.room * x.inner;
  const int64_t parts = PartsOfRun(x);
  const int64_t members = static_cast<int64_t>(x.piece.size());
  const int64_t at = cell % parts * kUnit;
  const int64_t member = cell / parts % members;
  const int64_t outer = cell / parts / members;
  const int64_t piece_begin = x.piece[member] * run;
  Part part;
  part.member = static_cast<size_t>(member);
  part.in_piece = outer * run + at;
  part.in_whole = outer * x.whole * x.inner + piece_begin + at;
  part.count = std::min(kUnit, run - at);
  part.valid = std::clamp<int64_t>(x.whole * x.inner - piece_begin - at, 0, part.count);
  return part;
}

template <typename T>
void ReduceScatter(const Work& work) {
  PartCells(work.x).ForEach(work, [&work](int64_t cell) {
    const Part part = PartAt(work.x, cell);
    T* out = reinterpret_cast<T*>(work.outputs[part.member]) + part.in_piece;
    for (int64_t at = 0; at < part.valid; at += kBlock) {
      Reduce<T, Plus>(work.inputs, part.in_whole + at, std::min(kBlock, part.valid - at), out + at);
    }
    std::fill(out + part.valid, out + part.count, T{0});
  });
}

void AllGather(const Work& work) {
  const int64_t size = SizeOf(work.x.dtype);
  PartCells(work.x).ForEach(work, [&work, size](int64_t cell) {
    const Part part = PartAt(work.x, cell);
    const char* from = work.inputs[part.member] + part.in_piece * size;
    for (char* out : work.outputs) std::memcpy(out + part.in_whole * size, from, part.valid * size);
  });
}

// Where the elements [outer, i, middle, j, *] begin in a tile [outer, dim, middle, second, inner],
// the two dims in either order.
struct TwoDims {
  const Exchange& x;
  int64_t dim;
  int64_t second;

  int64_t At(int64_t outer, int64_t i, int64_t middle, int64_t j) const {
    return x.second_is_minor ? (((outer * dim + i) * x.middle + middle) * second + j) * x.inner
                             : (((outer * second + j) * x.middle + middle) * dim + i) * x.inner;
  }
};

// What member `from` has of the elements [outer, i, ...] of member `to`'s result, `i` in the piece.
struct Row {
  int64_t from;
  int64_t to;
  int64_t outer;
  int64_t i;
};

// The rows between all pairs of members.
Cells RowCells(const Exchange& x) {
  const int64_t members = static_cast<int64_t>(x.piece.size());
  return Cells::Of(x.outer * members * members * x.room, x.middle * x.second_room * x.inner);
}

Row RowAt(const Exchange& x, int64_t cell) {
  const int64_t members = static_cast<int64_t>(x.piece.size());
  const int64_t pair = cell / x.room;
  return {pair % members, pair / members % members, pair / members / members, cell % x.room};
}

void MoveRow(const Exchange& x, const Row& row, const char* input, char* output) {
  const int64_t size = SizeOf(x.dtype);
  const TwoDims source{x, x.room, x.second_whole};
  const TwoDims target{x, x.whole, x.second_room};
  const int64_t at = x.piece[row.from] * x.room + row.i;
  const int64_t second = x.piece[row.to] * x.second_room;
  if (at >= x.whole) return;
  for (int64_t m = 0; m < x.middle; ++m) {
    for (int64_t j = 0; j < x.second_room; ++j) {
      char* out = output + target.At(row.outer, at, m, j) * size;
      if (second + j < x.second_whole) {
        const char* in = input + source.At(row.outer, row.i, m, second + j) * size;
        std::memcpy(out, in, x.inner * size);
      } else {
        std::memset(out, 0, x.inner * size);
      }
    }
  }
}

void AllToAll(const Work& work) {
  RowCells(work.x).ForEach(work, [&work](int64_t cell) {
    const Row row = RowAt(work.x, cell);
    MoveRow(work.x, row, work.inputs[row.from], work.outputs[row.to]);
  });
}

// Units of about kUnit elements.
int64_t UnitsOf(const Exchange& x) {
  switch (x.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
      return (x.whole + kUnit - 1) / kUnit;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return PartCells(x).units();
    case CollectiveKind::kAllToAll:
      return RowCells(x).units();
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      break;
  }
  return 0;
}

absl::Status NotServed(const Exchange& x) {
  return absl::UnimplementedError(
      absl::StrCat("no exchange between ranks does ", NameOf(x.kind), " of ", NameOf(x.dtype)));
}

// The exchanges that do arithmetic.
template <typename T>
void RunReduction(const Work& work) {
  if (work.x.kind == CollectiveKind::kAllReduceMax) {
    AllReduce<T, Larger>(work);
  } else if (work.x.kind == CollectiveKind::kReduceScatter) {
    ReduceScatter<T>(work);
  } else {
    AllReduce<T, Plus>(work);
  }
}

using Runner = void (*)(const Work&);

// How an exchange is run; null for one that is not.
Runner RunnerOf(const Exchange& x) {
  switch (x.kind) {
    case CollectiveKind::kAllGather:
      return AllGather;
    case CollectiveKind::kAllToAll:
      return AllToAll;
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      return nullptr;
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
    case CollectiveKind::kReduceScatter:
      break;
  }
  switch (x.dtype) {
    case DType::kF32:
      return RunReduction<float>;
    case DType::kF64:
      return RunReduction<double>;
    case DType::kI64:
      return RunReduction<int64_t>;
    case DType::kBF16:
      return RunReduction<Bfloat16>;
    case DType::kF16:
      return RunReduction<Float16>;
  }
  return nullptr;
}

}  // namespace

absl::Status RunExchanges(absl::Span<const TiledExchange> exchanges, Parallel& parallel) {
  int64_t units = 0;
  for (const TiledExchange& tiled : exchanges) {
    if (RunnerOf(*tiled.exchange) == nullptr) return NotServed(*tiled.exchange);
    units += UnitsOf(*tiled.exchange);
  }
  parallel.For(units, kHandOver, [exchanges](int64_t begin, int64_t end) {
    int64_t first = 0;  // unit of the exchange
    for (const TiledExchange& tiled : exchanges) {
      const int64_t last = first + UnitsOf(*tiled.exchange);
      const int64_t from = std::max(begin, first);
      const int64_t to = std::min(end, last);
      if (from < to) {
        const Runner run = RunnerOf(*tiled.exchange);
        run({*tiled.exchange, tiled.inputs, tiled.outputs, from - first, to - first});
      }
      first = last;
    }
  });
  return absl::OkStatus();
}

}  // namespace mgc
