#include "runtime/cuda/emulator/nccl_sums.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc::cuda::emulator {
namespace {

template <class T>
T Add(T a, T b) {
  return a + b;
}
Bfloat16 Add(Bfloat16 a, Bfloat16 b) { return ToBfloat16(ToFloat(a) + ToFloat(b)); }
Float16 Add(Float16 a, Float16 b) { return ToFloat16(ToFloat(a) + ToFloat(b)); }

template <class T>
T Larger(T a, T b) {
  return a > b ? a : b;
}
Bfloat16 Larger(Bfloat16 a, Bfloat16 b) { return ToFloat(a) > ToFloat(b) ? a : b; }
Float16 Larger(Float16 a, Float16 b) { return ToFloat(a) > ToFloat(b) ? a : b; }

template <class T>
void Reduce(const std::vector<const char*>& terms, size_t count, bool max, char* result) {
  const size_t ranks = terms.size();
  const size_t part = (count + ranks - 1) / ranks;
  for (size_t i = 0; i < count; ++i) {
    const auto term = [&](size_t rank) {
      T value;
      std::memcpy(&value, terms[rank % ranks] + i * sizeof(T), sizeof(T));
      return value;
    };
    const size_t first = i / part + 1;
    T sum = term(first);
    for (size_t next = first + 1; next < first + ranks; ++next) {
      sum = max ? Larger(sum, term(next)) : Add(sum, term(next));
    }
    std::memcpy(result + i * sizeof(T), &sum, sizeof(T));
  }
}

}  // namespace

size_t NcclSizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

bool NcclReduces(ncclDataType_t type, ncclRedOp_t op) {
  const bool known = type == ncclFloat32 || type == ncclFloat64 || type == ncclInt64 ||
                     type == ncclBfloat16 || type == ncclFloat16;
  return known && (op == ncclSum || op == ncclMax);
}

std::vector<char> NcclReduce(const std::vector<const char*>& terms, size_t count,
                             ncclDataType_t type, ncclRedOp_t op) {
  std::vector<char> result(count * NcclSizeOf(type));
  const bool max = op == ncclMax;
  if (type == ncclFloat32) Reduce<float>(terms, count, max, result.data());
  if (type == ncclFloat64) Reduce<double>(terms, count, max, result.data());
  if (type == ncclInt64) Reduce<int64_t>(terms, count, max, result.data());
  if (type == ncclBfloat16) Reduce<Bfloat16>(terms, count, max, result.data());
  if (type == ncclFloat16) Reduce<Float16>(terms, count, max, result.data());
  return result;
}

}  // namespace mgc::cuda::emulator
