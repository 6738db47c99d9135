#include <algorithm>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/elements.h"
#include "runtime/cuda/exchange/exchange_table.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

// What a cell's elements are, and how terms are joined.
template <class T>
struct Copy {
  using Element = T;
  using Wide = T;
  static constexpr bool kJoins = false;
  __device__ static T Widen(T x) { return x; }
  __device__ static T Narrow(T x) { return x; }
  __device__ static T Join(T a, T /*b*/) { return a; }
};

template <class T>
struct Terms {
  using Element = T;
  using Wide = float;
  static constexpr bool kJoins = true;
  __device__ static float Widen(T x) { return Load(x); }
  __device__ static T Narrow(float x) { return Store<T>(x); }
};
template <class T>
struct WideTerms {
  using Element = T;
  using Wide = T;
  static constexpr bool kJoins = true;
  __device__ static T Widen(T x) { return x; }
  __device__ static T Narrow(T x) { return x; }
};
template <>
struct Terms<double> : WideTerms<double> {};
template <>
struct Terms<int64_t> : WideTerms<int64_t> {};

template <class T>
struct Sum : Terms<T> {
  using Wide = typename Terms<T>::Wide;
  __device__ static Wide Join(Wide a, Wide b) { return a + b; }
};
template <class T>
struct Max : Terms<T> {
  using Wide = typename Terms<T>::Wide;
  __device__ static Wide Join(Wide a, Wide b) { return a > b ? a : b; }
};

// `n` elements at `in` of each source to `out` of each receiver, both in elements. All terms are
// read before anything is written: tiles may be both.
template <class Way, int n>
__device__ void MoveElements(const ExchangeTable& table, const ExchangeEntry& x, const Cell& cell,
                             int64_t behind) {
  using Element = typename Way::Element;
  using Elements = Vector<Element, n>;
  typename Way::Wide sum[n];
  const auto term = [&](int64_t member) {
    const char* const tile = table.address[x.inputs + member];
    return *reinterpret_cast<const Elements*>(tile + (cell.in + behind) * sizeof(Element));
  };
  const Elements first = term(cell.from_begin);
#pragma unroll
  for (int k = 0; k < n; ++k) sum[k] = Way::Widen(first.at[k]);
  if constexpr (Way::kJoins) {
#pragma unroll 4
    for (int64_t member = cell.from_begin + 1; member < cell.from_end; ++member) {
      const Elements next = term(member);
#pragma unroll
      for (int k = 0; k < n; ++k) sum[k] = Way::Join(sum[k], Way::Widen(next.at[k]));
    }
  }
  Elements made;
#pragma unroll
  for (int k = 0; k < n; ++k) made.at[k] = Way::Narrow(sum[k]);
  for (int64_t member = cell.to_begin; member < cell.to_end; ++member) {
    char* const tile = table.address[x.outputs + member];
    *reinterpret_cast<Elements*>(tile + (cell.out + behind) * sizeof(Element)) = made;
  }
}

// A cell by `lanes` threads, of which this is `lane`: neighbours take neighbouring elements.
template <class Way>
__device__ void MoveCell(const ExchangeTable& table, const ExchangeEntry& x, const Cell& cell,
                         int lane, int lanes) {
  using Element = typename Way::Element;
  constexpr int64_t kBytes = sizeof(Element);
  constexpr int kCount = kVectorBytes / kBytes;
  const int64_t bits = x.address_bits | cell.in * kBytes | cell.out * kBytes;
  const int64_t vectors = bits % kVectorBytes == 0 ? cell.count / kCount : 0;
  for (int64_t v = lane; v < vectors; v += lanes) {
    MoveElements<Way, kCount>(table, x, cell, v * kCount);
  }
  for (int64_t i = vectors * kCount + lane; i < cell.count; i += lanes) {
    MoveElements<Way, 1>(table, x, cell, i);
  }
  for (int64_t i = cell.count + lane; i < cell.count + cell.zeros; i += lanes) {
    for (int64_t member = cell.to_begin; member < cell.to_end; ++member) {
      reinterpret_cast<Element*>(table.address[x.outputs + member])[cell.out + i] = Element{};
    }
  }
}

template <class Way>
__global__ void __launch_bounds__(kExchangeBlock)
    ExchangeKernel(const __grid_constant__ ExchangeTable table) {
  int e = 0;
  for (int64_t unit = blockIdx.x; unit < table.units; unit += gridDim.x) {
    while (e + 1 < table.exchanges && unit >= table.exchange[e + 1].first_unit) ++e;
    const ExchangeEntry& x = table.exchange[e];
    const int lanes = 1 << x.lanes_log2;
    const int64_t at_a_time = kExchangeBlock >> x.lanes_log2;
    const int64_t index = (unit - x.first_unit) * at_a_time + (threadIdx.x >> x.lanes_log2);
    if (index < x.cells.count) {
      Cell cell = x.cells.At(index, x.piece);
      cell.from_end = std::min(cell.from_end, int64_t{x.senders});
      cell.to_end = std::min(cell.to_end, int64_t{x.receivers});
      MoveCell<Way>(table, x, cell, static_cast<int>(threadIdx.x) & (lanes - 1), lanes);
    }
  }
}

template <class Way>
int Issue(Stream stream, const ExchangeTable& table) {
  const LaunchShape shape = ShapeFor(table.units * kExchangeBlock, kExchangeBlock);
  return Launch(ExchangeKernel<Way>, shape, stream, table);
}

}  // namespace

template <class T>
int IssueCopies(Stream stream, const ExchangeTable& table) {
  return Issue<Copy<T>>(stream, table);
}
template <class T>
int IssueSums(Stream stream, const ExchangeTable& table) {
  return Issue<Sum<T>>(stream, table);
}
template <class T>
int IssueMaxima(Stream stream, const ExchangeTable& table) {
  return Issue<Max<T>>(stream, table);
}

template int IssueCopies<uint16_t>(Stream, const ExchangeTable&);
template int IssueCopies<uint32_t>(Stream, const ExchangeTable&);
template int IssueCopies<uint64_t>(Stream, const ExchangeTable&);

#define MGC_INSTANTIATE(T)                                 \
  template int IssueSums<T>(Stream, const ExchangeTable&); \
  template int IssueMaxima<T>(Stream, const ExchangeTable&)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(double);
MGC_INSTANTIATE(int64_t);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
