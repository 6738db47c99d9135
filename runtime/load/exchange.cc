#include "runtime/load/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/types/bfloat16.h"

namespace mgc {
namespace {

constexpr int64_t kBlock = 1024;      // elements summed at a time: they stay in the first cache
constexpr int64_t kUnit = 8192;       // elements of a unit of work
constexpr int64_t kHandOver = 16384;  // elements worth handing to another thread

Sharding Without(Sharding sharding, AxisSet axes) {
  for (AxisList& list : sharding.dims) {
    for (AxisId axis : axes) list.Remove(axis);
  }
  for (AxisId axis : axes) sharding.storage.Remove(axis);
  return sharding;
}

int64_t Product(absl::Span<const int64_t> sizes, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= sizes[i];
  return product;
}

// Pieces held by the members of a group, in its order.
std::vector<int> Pieces(const AxisList& axes, const Mesh& mesh) {
  std::vector<int> pieces;
  for (int64_t rank : mesh.Group(0, axes.AsSet())) {
    pieces.push_back(static_cast<int>(mesh.ShardIndex(rank, axes)));
  }
  return pieces;
}

// Describes the dim (or the flat tile) that is cut in `cut` and whole over the axes in `whole`.
void FillDim(const TensorType& type, const Sharding& cut, const Sharding& whole, int dim,
             const Mesh& mesh, Exchange* out) {
  const std::vector<int64_t> pieces = LocalShape(type, cut, mesh);
  const std::vector<int64_t> wholes = LocalShape(type, whole, mesh);
  if (dim < 0) {
    out->whole = NumElements(wholes);
    out->room = NumElements(pieces);
    return;
  }
  const int ndim = static_cast<int>(pieces.size());
  out->outer = Product(pieces, 0, dim);
  out->whole = wholes[dim];
  out->room = pieces[dim];
  out->inner = Product(pieces, dim + 1, ndim);
}

// Describes an all-to-all from dim `from_dim` (cut, becomes whole) to `to_dim` (whole, becomes
// cut).
void FillTwoDims(const TensorType& type, const Sharding& from, const Sharding& to,
                 const Collective& collective, const Mesh& mesh, Exchange* out) {
  const std::vector<int64_t> a = LocalShape(type, from, mesh);
  const std::vector<int64_t> b = LocalShape(type, to, mesh);
  const int first = std::min(collective.dim, collective.to_dim);
  const int second = std::max(collective.dim, collective.to_dim);
  out->outer = Product(a, 0, first);
  out->middle = Product(a, first + 1, second);
  out->inner = Product(a, second + 1, static_cast<int>(a.size()));
  out->second_is_minor = collective.to_dim == second;
  out->whole = b[collective.dim];
  out->room = a[collective.dim];
  out->second_whole = a[collective.to_dim];
  out->second_room = b[collective.to_dim];
}

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

template <typename T, template <typename> class Op>
void AllReduce(const Exchange& x, absl::Span<const char* const> inputs,
               absl::Span<char* const> outputs, Parallel& parallel) {
  parallel.For(x.whole, kHandOver, [&](int64_t begin, int64_t end) {
    alignas(64) T sum[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t count = std::min(kBlock, end - at);
      Reduce<T, Op>(inputs, at, count, sum);
      for (char* out : outputs) std::memcpy(out + at * sizeof(T), sum, count * sizeof(T));
    }
  });
}

// One contiguous part of one piece: `count` elements at `in_piece` within the piece's tile and
// `in_whole` within the whole one; the first `valid` lie inside the whole.
struct Part {
  size_t member;
  int64_t in_piece;
  int64_t in_whole;
  int64_t count;
  int64_t valid;
};

// Calls fn(part) for all parts of all members' pieces, in parallel.
void ForEachPart(const Exchange& x, Parallel& parallel, absl::FunctionRef<void(const Part&)> fn) {
  const int64_t run = x.room * x.inner;
  const int64_t units = (run + kUnit - 1) / kUnit;
  const int64_t members = static_cast<int64_t>(x.piece.size());
  const int64_t grain =
      std::max<int64_t>(1, kHandOver / std::min(std::max<int64_t>(run, 1), kUnit));
  parallel.For(x.outer * members * units, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % units * kUnit;
      const int64_t member = i / units % members;
      const int64_t outer = i / units / members;
      const int64_t piece_begin = x.piece[member] * run;
      Part part;
      part.member = static_cast<size_t>(member);
      part.in_piece = outer * run + at;
      part.in_whole = outer * x.whole * x.inner + piece_begin + at;
      part.count = std::min(kUnit, run - at);
      part.valid = std::clamp<int64_t>(x.whole * x.inner - piece_begin - at, 0, part.count);
      fn(part);
    }
  });
}

template <typename T>
void ReduceScatter(const Exchange& x, absl::Span<const char* const> inputs,
                   absl::Span<char* const> outputs, Parallel& parallel) {
  ForEachPart(x, parallel, [&](const Part& part) {
    T* out = reinterpret_cast<T*>(outputs[part.member]) + part.in_piece;
    for (int64_t at = 0; at < part.valid; at += kBlock) {
      Reduce<T, Plus>(inputs, part.in_whole + at, std::min(kBlock, part.valid - at), out + at);
    }
    std::fill(out + part.valid, out + part.count, T{0});
  });
}

void AllGather(const Exchange& x, absl::Span<const char* const> inputs,
               absl::Span<char* const> outputs, Parallel& parallel) {
  const int64_t size = SizeOf(x.dtype);
  ForEachPart(x, parallel, [&](const Part& part) {
    const char* from = inputs[part.member] + part.in_piece * size;
    for (char* out : outputs) std::memcpy(out + part.in_whole * size, from, part.valid * size);
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

// What member `from` has of the elements [outer, ...] of member `to`'s result.
void MoveBetween(const Exchange& x, int64_t from, int64_t to, int64_t outer, const char* input,
                 char* output) {
  const int64_t size = SizeOf(x.dtype);
  const TwoDims source{x, x.room, x.second_whole};
  const TwoDims target{x, x.whole, x.second_room};
  const int64_t first = x.piece[from] * x.room;
  const int64_t second = x.piece[to] * x.second_room;
  const int64_t rows = std::clamp<int64_t>(x.whole - first, 0, x.room);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t m = 0; m < x.middle; ++m) {
      for (int64_t j = 0; j < x.second_room; ++j) {
        char* out = output + target.At(outer, first + i, m, j) * size;
        if (second + j < x.second_whole) {
          const char* in = input + source.At(outer, i, m, second + j) * size;
          std::memcpy(out, in, x.inner * size);
        } else {
          std::memset(out, 0, x.inner * size);
        }
      }
    }
  }
}

void AllToAll(const Exchange& x, absl::Span<const char* const> inputs,
              absl::Span<char* const> outputs, Parallel& parallel) {
  const int64_t members = static_cast<int64_t>(x.piece.size());
  parallel.For(x.outer * members * members, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t from = unit % members;
      const int64_t to = unit / members % members;
      MoveBetween(x, from, to, unit / members / members, inputs[from], outputs[to]);
    }
  });
}

absl::Status NotServed(const Exchange& x) {
  return absl::UnimplementedError(
      absl::StrCat("no exchange between ranks does ", NameOf(x.kind), " of ", NameOf(x.dtype)));
}

// The exchanges that do arithmetic.
template <typename T>
absl::Status ReduceOf(const Exchange& x, absl::Span<const char* const> inputs,
                      absl::Span<char* const> outputs, Parallel& parallel) {
  switch (x.kind) {
    case CollectiveKind::kAllReduce:
      AllReduce<T, Plus>(x, inputs, outputs, parallel);
      return absl::OkStatus();
    case CollectiveKind::kAllReduceMax:
      AllReduce<T, Larger>(x, inputs, outputs, parallel);
      return absl::OkStatus();
    case CollectiveKind::kReduceScatter:
      ReduceScatter<T>(x, inputs, outputs, parallel);
      return absl::OkStatus();
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      break;
  }
  return NotServed(x);
}

absl::Status RunReduction(const Exchange& x, absl::Span<const char* const> inputs,
                          absl::Span<char* const> outputs, Parallel& parallel) {
  switch (x.dtype) {
    case DType::kF32:
      return ReduceOf<float>(x, inputs, outputs, parallel);
    case DType::kF64:
      return ReduceOf<double>(x, inputs, outputs, parallel);
    case DType::kI64:
      return ReduceOf<int64_t>(x, inputs, outputs, parallel);
    case DType::kBF16:
      return ReduceOf<Bfloat16>(x, inputs, outputs, parallel);
  }
  return NotServed(x);
}

class SliceKernel : public Kernel {
 public:
  SliceKernel(Exchange slice, int64_t piece) : slice_(std::move(slice)), piece_(piece) {}

  absl::Status Run(const KernelRun& run, Parallel& parallel) const override {
    const int64_t size = SizeOf(slice_.dtype);
    const char* from = static_cast<const char*>(run.inputs[0]);
    char* to = static_cast<char*>(run.outputs[0]);
    const int64_t row = slice_.room * slice_.inner;
    const int64_t begin = piece_ * row;
    const int64_t whole = slice_.whole * slice_.inner;
    const int64_t valid = std::clamp<int64_t>(whole - begin, 0, row);
    const int64_t grain = std::max<int64_t>(1, kHandOver / std::max<int64_t>(row, 1));
    parallel.For(slice_.outer, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        std::memmove(to + i * row * size, from + (i * whole + begin) * size, valid * size);
        std::memset(to + (i * row + valid) * size, 0, (row - valid) * size);
      }
    });
    return absl::OkStatus();
  }

 private:
  Exchange slice_;
  int64_t piece_;
};

class LiftKernel : public Kernel {
 public:
  LiftKernel(int64_t bytes, bool keeps) : bytes_(bytes), keeps_(keeps) {}

  absl::Status Run(const KernelRun& run, Parallel& parallel) const override {
    const char* from = static_cast<const char*>(run.inputs[0]);
    char* to = static_cast<char*>(run.outputs[0]);
    parallel.For(bytes_, 4 * kHandOver, [&](int64_t begin, int64_t end) {
      if (keeps_) {
        std::memmove(to + begin, from + begin, end - begin);
      } else {
        std::memset(to + begin, 0, end - begin);
      }
    });
    return absl::OkStatus();
  }

 private:
  int64_t bytes_;
  bool keeps_;
};

}  // namespace

bool operator==(const Exchange& a, const Exchange& b) {
  return a.kind == b.kind && a.axes == b.axes && a.dtype == b.dtype && a.outer == b.outer &&
         a.whole == b.whole && a.room == b.room && a.inner == b.inner &&
         a.second_is_minor == b.second_is_minor && a.middle == b.middle &&
         a.second_whole == b.second_whole && a.second_room == b.second_room && a.piece == b.piece;
}

Exchange ExchangeOf(const Collective& collective, const TensorType& type, const Sharding& from,
                    const Sharding& to, const Mesh& mesh) {
  Exchange exchange;
  exchange.dtype = type.dtype;
  exchange.whole = LocalElements(type, from, mesh);
  exchange.room = exchange.whole;
  exchange.kind = collective.kind;
  exchange.axes = collective.axes.AsSet();
  exchange.piece = Pieces(collective.axes, mesh);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
    case CollectiveKind::kLift:
      break;
    case CollectiveKind::kAllGather:
      FillDim(type, from, Without(from, exchange.axes), collective.dim, mesh, &exchange);
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kSlice:
      FillDim(type, to, Without(to, exchange.axes), collective.dim, mesh, &exchange);
      break;
    case CollectiveKind::kAllToAll:
      FillTwoDims(type, from, to, collective, mesh, &exchange);
      break;
  }
  return exchange;
}

absl::Status RunExchange(const Exchange& exchange, absl::Span<const char* const> inputs,
                         absl::Span<char* const> outputs, Parallel& parallel) {
  switch (exchange.kind) {
    case CollectiveKind::kAllGather:
      AllGather(exchange, inputs, outputs, parallel);
      return absl::OkStatus();
    case CollectiveKind::kAllToAll:
      AllToAll(exchange, inputs, outputs, parallel);
      return absl::OkStatus();
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
    case CollectiveKind::kReduceScatter:
      return RunReduction(exchange, inputs, outputs, parallel);
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      break;
  }
  return NotServed(exchange);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLocalMove(const TensorType& type, const Sharding& from,
                                                      const Sharding& to, absl::string_view op,
                                                      const Mesh& mesh, int64_t rank) {
  MGC_ASSIGN_OR_RETURN(const Collective collective, CollectiveBetween(from, to, op));
  Exchange exchange = ExchangeOf(collective, type, from, to, mesh);
  if (collective.kind == CollectiveKind::kLift) {
    bool keeps = true;
    for (AxisId axis : exchange.axes) keeps = keeps && mesh.Coordinate(rank, axis) == 0;
    return std::make_unique<LiftKernel>(exchange.whole * SizeOf(type.dtype), keeps);
  }
  if (collective.kind != CollectiveKind::kSlice) {
    return absl::InvalidArgumentError(absl::StrCat(op, " is not local"));
  }
  return std::make_unique<SliceKernel>(std::move(exchange), mesh.ShardIndex(rank, collective.axes));
}

}  // namespace mgc
