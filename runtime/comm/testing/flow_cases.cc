#include "runtime/comm/testing/flow_cases.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "graph/types/sharding_text.h"

namespace mgc {
namespace {

using Random = std::mt19937_64;

int64_t Draw(int64_t low, int64_t high, Random* random) {
  return std::uniform_int_distribution<int64_t>(low, high)(*random);
}

Exchange DrawExchange(CollectiveKind kind, DType dtype, int members, Random* random) {
  const auto draw = [random](int64_t low, int64_t high) { return Draw(low, high, random); };
  Exchange x;
  x.kind = kind;
  x.dtype = dtype;
  for (int m = 0; m < members; ++m) x.piece.push_back(m);
  std::shuffle(x.piece.begin(), x.piece.end(), *random);
  const bool large = draw(0, 2) == 0;
  const bool empty = draw(0, 15) == 0;
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
      x.whole = x.room = empty ? 0 : large ? draw(1, 200000) : draw(1, 3000);
      break;
    case CollectiveKind::kAllToAll:
      x.second_is_minor = draw(0, 1) == 1;
      x.middle = draw(1, 3);
      x.second_whole = draw(1, 40);
      x.second_room = (x.second_whole + members - 1) / members;
      [[fallthrough]];
    default:
      x.outer = draw(1, 4);
      x.inner = draw(1, 5);
      x.whole = empty ? 0 : large ? draw(1, 9000) : draw(1, 60);
      x.room = (x.whole + members - 1) / members;
  }
  return x;
}

// Numbers that every type has, and any sum of some of them.
void FillWhole(DType dtype, Random* random, std::vector<char>* bytes) {
  constexpr int64_t kMost = 20;
  const auto step = static_cast<size_t>(SizeOf(dtype));
  const auto put = [&](size_t at, auto x) { std::memcpy(bytes->data() + at, &x, sizeof(x)); };
  for (size_t i = 0; i < bytes->size(); i += step) {
    const int64_t x = static_cast<int64_t>((*random)() % (2 * kMost + 1)) - kMost;
    if (dtype == DType::kF32) put(i, static_cast<float>(x));
    if (dtype == DType::kF64) put(i, static_cast<double>(x));
    if (dtype == DType::kI64) put(i, x);
    if (dtype == DType::kBF16) put(i, ToBfloat16(static_cast<float>(x)));
    if (dtype == DType::kF16) put(i, ToFloat16(static_cast<float>(x)));
  }
}

}  // namespace

TileSizes SizesOf(const Exchange& x) {
  const int64_t piece = x.outer * x.room * x.inner;
  const int64_t whole = x.outer * x.whole * x.inner;
  switch (x.kind) {
    case CollectiveKind::kAllGather:
      return {piece, whole};
    case CollectiveKind::kReduceScatter:
      return {whole, piece};
    case CollectiveKind::kAllToAll:
      return {piece * x.middle * x.second_whole, whole * x.middle * x.second_room};
    default:
      return {x.whole, x.whole};
  }
}

void FillTile(DType dtype, bool whole, Random* random, std::vector<char>* bytes) {
  if (whole) return FillWhole(dtype, random, bytes);
  const size_t step = dtype == DType::kF32 ? 4 : 8;
  for (size_t i = 0; i < bytes->size(); i += step) {
    uint64_t bits = (*random)();
    if (dtype == DType::kF32) {
      const float x = static_cast<float>(static_cast<int32_t>(bits)) / 2147483648.0f;
      std::memcpy(&bits, &x, 4);
    } else if (dtype == DType::kI64) {
      bits = static_cast<uint64_t>(static_cast<int64_t>(bits) >> 5);  // sums stay in the type
    } else {
      // Of every byte below 64: patterns of two bytes whose exponents are neither high nor low, and
      // whole doubles likewise.
      bits &= 0x3f3f3f3f3f3f3f3f;
    }
    std::memcpy(bytes->data() + i, &bits, std::min(step, bytes->size() - i));
  }
}

const char* NameOf(FlowWay way) {
  switch (way) {
    case FlowWay::kLine:
      return "line";
    case FlowWay::kDirect:
      return "direct";
    case FlowWay::kLibrary:
      return "library";
    case FlowWay::kMapped:
      break;
  }
  return "mapped";
}

std::string FlowCase::Describe() const {
  int64_t bytes = 0;
  for (const Exchange& x : parts) bytes += SizesOf(x).in * SizeOf(x.dtype);
  return absl::StrCat(NameOf(parts[0].kind), " of ", parts.size(), " x ", NameOf(parts[0].dtype),
                      ", ", bytes, " bytes, in ", stops.size(), " processes with ",
                      stops.back().last, " members, ", NameOf(way), in_place ? ", in place" : "");
}

FlowCase DrawFlowCase(int processes, bool mapped, Random* random) {
  FlowCase c;
  int64_t members = 0;
  for (int p = 0; p < processes; ++p) {
    const int64_t count = Draw(1, 3, random);
    c.stops.push_back({p, members, members + count});
    members += count;
  }
  const CollectiveKind kinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllReduceMax,
                                  CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                  CollectiveKind::kAllToAll};
  const DType types[] = {DType::kF32, DType::kF32,  DType::kF64,
                         DType::kI64, DType::kBF16, DType::kF16};
  const CollectiveKind kind = kinds[Draw(0, 4, random)];
  const DType type = types[Draw(0, 5, random)];
  const int64_t parts = Draw(1, 3, random);
  for (int64_t p = 0; p < parts; ++p) {
    c.parts.push_back(DrawExchange(kind, type, static_cast<int>(members), random));
  }
  if (mapped && Draw(0, 1, random) == 0) {
    c.way = FlowWay::kMapped;
  } else if (kind == CollectiveKind::kAllToAll || Draw(0, 1, random) == 0) {
    c.way = FlowWay::kDirect;
  }
  c.in_place = kind == CollectiveKind::kAllReduce && Draw(0, 1, random) == 0;
  return c;
}

FlowCase DrawLibraryCase(int processes, Random* random) {
  FlowCase c;
  do {
    c = DrawFlowCase(processes, false, random);
  } while (c.parts[0].kind != CollectiveKind::kAllReduce &&
           c.parts[0].kind != CollectiveKind::kAllReduceMax);
  c.way = FlowWay::kLibrary;
  c.whole = true;
  // As many of the processes as there were, or fewer, with the members that they had.
  while (c.stops.size() > 2 && Draw(0, 1, random) == 0) {
    c.stops.erase(c.stops.begin() + Draw(0, static_cast<int64_t>(c.stops.size()) - 1, random));
  }
  int64_t members = 0;
  for (Stop& stop : c.stops) {
    const int64_t count = stop.last - stop.first;
    stop = {stop.process, members, members + count};
    members += count;
  }
  for (Exchange& part : c.parts) part.piece.resize(static_cast<size_t>(members));
  return c;
}

FlowCase LargeFlowCase(int processes, int64_t bytes, FlowWay way) {
  FlowCase c;
  c.way = way;
  c.in_place = true;
  Exchange x;
  x.whole = x.room = bytes / SizeOf(x.dtype);
  for (int p = 0; p < processes; ++p) {
    c.stops.push_back({p, p, p + 1});
    x.piece.push_back(p);
  }
  c.parts.push_back(x);
  return c;
}

}  // namespace mgc
