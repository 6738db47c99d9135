// What one launch is given of exchanges, and the launches: between exchanges.cc, which includes no
// CUDA, and exchange_kernels.cu.cc, which includes nothing else of the runtime.

#ifndef MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGE_TABLE_H_
#define MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGE_TABLE_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"
#include "runtime/comm/cell_geometry.h"

namespace mgc::cuda {

inline constexpr int kMostMembers = 16;         // of a group on one GPU
inline constexpr int kExchangesPerTable = 12;   // at most
inline constexpr int kAddressesPerTable = 240;  // tiles of all exchanges at most
inline constexpr int kExchangeBlock = 256;      // threads of a block

// One exchange. A cell is moved by 2^lanes_log2 threads, so a block moves several at a time; what a
// block moves at a time is a *unit*.
struct ExchangeEntry {
  CellGeometry cells;
  int64_t first_unit = 0;    // units of the exchanges before it
  int32_t address_bits = 0;  // the last bits of all addresses, or-ed
  // Where the members' tiles begin in ExchangeTable::address, and how many there are: cells go from
  // those and to those only.
  int16_t inputs = 0;
  int16_t outputs = 0;
  int16_t senders = 0;
  int16_t receivers = 0;
  int16_t lanes_log2 = 0;
  int32_t piece[kMostMembers] = {};
};

// A kernel's argument, whole, so that nothing is copied to the device beforehand.
struct ExchangeTable {
  ExchangeEntry exchange[kExchangesPerTable];
  char* address[kAddressesPerTable];
  int64_t units = 0;
  int32_t exchanges = 0;

  // What the kernel follows, for the emulator: `f(at, written)`.
  template <class Function>
  void ForEachPointer(const Function& f) const {
    for (int32_t e = 0; e < exchanges; ++e) {
      const ExchangeEntry& x = exchange[e];
      for (int m = 0; m < x.senders; ++m) f(address[x.inputs + m], false);
      for (int m = 0; m < x.receivers; ++m) f(address[x.outputs + m], true);
    }
  }
};
static_assert(sizeof(ExchangeTable) <= 4096, "as arguments of a kernel may be");

// For exchanges all of whose cells take one term: T is an unsigned integer of an element's size.
template <class T>
int IssueCopies(Stream stream, const ExchangeTable& table);
// Terms in ascending order of members, those of 16 bits in f32 and rounded once. T is float,
// double, int64_t, Bfloat16 or Float16.
template <class T>
int IssueSums(Stream stream, const ExchangeTable& table);
template <class T>
int IssueMaxima(Stream stream, const ExchangeTable& table);

}  // namespace mgc::cuda

#endif  // MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGE_TABLE_H_
