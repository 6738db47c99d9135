// Collectives between processes, drawn at random. All processes draw the same from the same seed.

#ifndef MGC_RUNTIME_COMM_TESTING_FLOW_CASES_H_
#define MGC_RUNTIME_COMM_TESTING_FLOW_CASES_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/comm/routes.h"
#include "runtime/load/exchange.h"

namespace mgc {

enum class FlowWay { kLine, kDirect, kMapped, kLibrary };
const char* NameOf(FlowWay way);

// A collective with the shares of all processes in it.
struct FlowCase {
  std::vector<Exchange> parts;
  std::vector<Stop> stops;
  FlowWay way = FlowWay::kLine;
  bool in_place = false;
  // Elements are small whole numbers, whose sum is the same in any order.
  bool whole = false;

  std::string Describe() const;
};

// Of a random kind, type and size, now and then of nothing, whose pieces may be uneven or lie
// outside of the whole; each process has up to three members.
FlowCase DrawFlowCase(int processes, bool mapped, std::mt19937_64* random);
// An all-reduce that goes through a library, of whole numbers, in some of the processes; otherwise
// as DrawFlowCase.
FlowCase DrawLibraryCase(int processes, std::mt19937_64* random);
// An all-reduce of `bytes`, in place, of one member a process.
FlowCase LargeFlowCase(int processes, int64_t bytes, FlowWay way);
// Of a region that the tiles of random cases fit in, for each lane.
inline constexpr int64_t kFlowRegionBytes = int64_t{64} << 20;

// Elements of a tile that an exchange reads and of one that it writes.
struct TileSizes {
  int64_t in = 0;
  int64_t out = 0;
};
TileSizes SizesOf(const Exchange& exchange);
// Fills a tile with random elements, whose sums are rounded and stay in the type; or with `whole`
// numbers, any sum of some of which every type has.
void FillTile(DType dtype, bool whole, std::mt19937_64* random, std::vector<char>* bytes);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TESTING_FLOW_CASES_H_
