// Collectives between processes that are threads, each with a link and a flow of its own, against
// RunExchanges over all members: bit for bit.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding_text.h"
#include "gtest/gtest.h"
#include "runtime/comm/direct_flow.h"
#include "runtime/comm/line_flow.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/heap_regions.h"

namespace mgc {
namespace {

using Random = std::mt19937_64;

// A collective of a random kind, type and size over `members` members, whose pieces may be uneven
// or lie outside of the whole.
Exchange DrawExchange(CollectiveKind kind, DType dtype, int members, Random* random) {
  const auto draw = [random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  Exchange x;
  x.kind = kind;
  x.dtype = dtype;
  for (int m = 0; m < members; ++m) x.piece.push_back(m);
  std::shuffle(x.piece.begin(), x.piece.end(), *random);
  const bool large = draw(0, 2) == 0;
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
      x.whole = x.room = large ? draw(1, 200000) : draw(1, 3000);
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
      x.whole = large ? draw(1, 9000) : draw(1, 60);
      x.room = (x.whole + members - 1) / members;
  }
  return x;
}

struct TileSizes {
  int64_t in = 0;
  int64_t out = 0;
};

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

// All members' tiles of one exchange, as bytes.
struct Tiles {
  std::vector<std::vector<char>> in, out;
  std::vector<const char*> inputs;
  std::vector<char*> outputs;

  Tiles(const Exchange& x, bool in_place, Random* random) {
    const TileSizes sizes = SizesOf(x);
    const int64_t bytes = SizeOf(x.dtype);
    for (size_t m = 0; m < x.piece.size(); ++m) {
      in.emplace_back(static_cast<size_t>(sizes.in * bytes));
      out.emplace_back(static_cast<size_t>(sizes.out * bytes), 'x');
      Fill(x.dtype, random, &in.back());
    }
    Point(in_place);
  }
  Tiles(const Tiles& other, bool in_place) : in(other.in), out(other.out) { Point(in_place); }

  const std::vector<std::vector<char>>& results() const { return in_place_ ? in : out; }

 private:
  void Point(bool in_place) {
    in_place_ = in_place;
    for (size_t m = 0; m < in.size(); ++m) {
      inputs.push_back(in[m].data());
      outputs.push_back(in_place ? in[m].data() : out[m].data());
    }
  }

  static void Fill(DType dtype, Random* random, std::vector<char>* bytes) {
    if (dtype == DType::kF32) {
      for (size_t i = 0; i + 4 <= bytes->size(); i += 4) {
        const float x = std::uniform_real_distribution<float>(-1, 1)(*random);
        std::memcpy(bytes->data() + i, &x, 4);
      }
      return;
    }
    // Patterns of two bytes whose exponents are neither high nor low; whole doubles likewise.
    for (char& byte : *bytes) byte = static_cast<char>((*random)() % 64);
  }

  bool in_place_ = false;
};

// A collective with the shares of all processes in it.
struct Case {
  std::vector<Exchange> parts;
  std::vector<Stop> stops;
  bool direct = false;
  bool in_place = false;
};

Case DrawCase(Random* random) {
  const auto draw = [random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(*random);
  };
  Case c;
  int members = 0;
  const int stops = draw(2, 4);
  for (int s = 0; s < stops; ++s) {
    const int count = draw(1, 3);
    c.stops.push_back({s, members, members + count});
    members += count;
  }
  const CollectiveKind kinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllReduceMax,
                                  CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                  CollectiveKind::kAllToAll};
  const DType types[] = {DType::kF32, DType::kF32,  DType::kF64,
                         DType::kI64, DType::kBF16, DType::kF16};
  const CollectiveKind kind = kinds[draw(0, 4)];
  const DType type = types[draw(0, 5)];
  const int parts = draw(1, 3);
  for (int p = 0; p < parts; ++p) c.parts.push_back(DrawExchange(kind, type, members, random));
  c.direct = kind == CollectiveKind::kAllToAll || draw(0, 1) == 0;
  c.in_place = c.parts[0].kind == CollectiveKind::kAllReduce && draw(0, 1) == 0;
  return c;
}

// What one process needs for a case: channels between all stops, both ways.
struct Process {
  Process(HeapWorld& world, const Case& c, int self) : regions(world, self), link(regions) {
    const int stops = static_cast<int>(c.stops.size());
    for (int from = 0; from < stops; ++from) {
      for (int to = 0; to < stops; ++to) {
        if (from == to || (from != self && to != self)) continue;
        channels.push_back({from, to, ChannelKind::kDirect});
      }
    }
    std::sort(channels.begin(), channels.end());
    route.stops = c.stops;
    route.mine = self;
    route.to.resize(c.stops.size());
    route.from.resize(c.stops.size());
    for (const Stop& stop : c.stops) {
      route.stop_of.insert(route.stop_of.end(), static_cast<size_t>(stop.last - stop.first),
                           stop.process);
    }
    for (size_t i = 0; i < channels.size(); ++i) {
      const ChannelKey& key = channels[i];
      (key.from == self ? route.to[key.to] : route.from[key.from]) = i;
      if (key.from == self && key.to == self + 1) route.to_next = i;
      if (key.from == self && key.to == self - 1) route.to_previous = i;
      if (key.to == self && key.from == self + 1) route.from_next = i;
      if (key.to == self && key.from == self - 1) route.from_previous = i;
    }
  }

  HeapRegions regions;
  SharedLink link;
  std::vector<ChannelKey> channels;
  Route route;
};

// Runs a case `times` times over the same channels in one process.
void RunProcess(const Case& c, HeapWorld& world, int self, int times,
                std::vector<std::vector<Tiles>>* tiles, uint64_t seed) {
  Process process(world, c, self);
  ASSERT_TRUE(process.link.Open(process.channels, self).ok());
  Random random(seed);
  Share share(c.parts.size());
  LineFlow line;
  DirectFlow direct(c.stops.size());
  for (int time = 0; time < times; ++time) {
    std::vector<TiledExchange> exchanges;
    for (size_t p = 0; p < c.parts.size(); ++p) {
      Tiles& t = (*tiles)[static_cast<size_t>(time)][p];
      exchanges.push_back({&c.parts[p], t.inputs, t.outputs});
    }
    share.Begin(exchanges, process.route);
    c.direct ? direct.Begin(share, process.link) : line.Begin(share, process.link);
    while (!(c.direct ? direct.done() : line.done())) {
      if (!(c.direct ? direct.Advance() : line.Advance())) std::this_thread::yield();
      if (random() % 64 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    }
  }
}

TEST(FlowTest, EqualsTheExchangeInOneProcess) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Random random(seed);
  constexpr int kCases = 150;
  constexpr int kTimes = 2;
  for (int i = 0; i < kCases; ++i) {
    const Case c = DrawCase(&random);
    SCOPED_TRACE(absl::StrCat("case ", i, ": ", NameOf(c.parts[0].kind), " of ",
                              NameOf(c.parts[0].dtype), " in ", c.stops.size(), " processes, ",
                              c.direct ? "direct" : "line", c.in_place ? ", in place" : ""));
    std::vector<std::vector<Tiles>> want, made;
    for (int time = 0; time < kTimes; ++time) {
      want.emplace_back();
      made.emplace_back();
      for (const Exchange& part : c.parts) {
        want.back().emplace_back(part, c.in_place, &random);
        made.back().emplace_back(want.back().back(), c.in_place);
      }
    }
    SerialParallel serial;
    for (auto& tiles : want) {
      for (size_t p = 0; p < c.parts.size(); ++p) {
        const TiledExchange tiled = {&c.parts[p], tiles[p].inputs, tiles[p].outputs};
        ASSERT_TRUE(RunExchanges({&tiled, 1}, serial).ok());
      }
    }
    HeapWorld world(static_cast<int>(c.stops.size()));
    std::vector<std::thread> threads;
    for (int s = 0; s < static_cast<int>(c.stops.size()); ++s) {
      threads.emplace_back([&, s] { RunProcess(c, world, s, kTimes, &made, seed + i * 7 + s); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int time = 0; time < kTimes; ++time) {
      for (size_t p = 0; p < c.parts.size(); ++p) {
        ASSERT_EQ(made[time][p].results(), want[time][p].results()) << "part " << p;
      }
    }
  }
}

}  // namespace
}  // namespace mgc
