#include "tools/benchmarks/collectives.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "runtime/comm/run_exchanges.h"

namespace mgc {
namespace {

constexpr int64_t kRanks = 2;
constexpr int64_t kCopyGrain = 1 << 16;  // bytes

// The one change of sharding for which each collective is timed.
struct Change {
  const char* op;
  const char* from;
  const char* to;
};
constexpr Change kChanges[] = {
    {"all_reduce", "-+dp", "-"}, {"reduce_scatter", "-+dp", "dp"}, {"all_gather", "dp", "-"}};

struct Timed {
  Exchange exchange;
  int64_t in_bytes = 0, out_bytes = 0;  // of a rank's tile
};

absl::StatusOr<Timed> TimedExchange(absl::string_view op, int64_t elements, DType type) {
  const Change* change = std::find_if(std::begin(kChanges), std::end(kChanges),
                                      [op](const Change& c) { return c.op == op; });
  if (change == std::end(kChanges)) {
    return absl::InternalError(absl::StrCat(op, " is no collective that is timed alone"));
  }
  const std::vector<MeshAxis> axes = {{"dp", kRanks}};
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::Create(axes));
  const TensorType value = {type, {{elements, "elements"}}};
  MGC_ASSIGN_OR_RETURN(const Sharding from, ParseSharding(change->from, mesh));
  MGC_ASSIGN_OR_RETURN(const Sharding to, ParseSharding(change->to, mesh));
  MGC_ASSIGN_OR_RETURN(const Collective collective, CollectiveBetween(from, to, op));
  return Timed{ExchangeOf(collective, value, from, to, mesh),
               LocalElements(value, from, mesh) * SizeOf(type),
               LocalElements(value, to, mesh) * SizeOf(type)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchSide>> CollectiveRunner::Create(absl::string_view op,
                                                                    int64_t elements, DType type,
                                                                    int workers) {
  MGC_ASSIGN_OR_RETURN(Timed timed, TimedExchange(op, elements, type));
  std::unique_ptr<CollectiveRunner> runner(
      new CollectiveRunner(std::move(timed.exchange), workers));
  const bool in_place = runner->exchange_.kind == CollectiveKind::kAllReduce;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    runner->inputs_.emplace_back(static_cast<size_t>(timed.in_bytes));
    if (!in_place) runner->outputs_.emplace_back(static_cast<size_t>(timed.out_bytes));
  }
  runner->bytes_ = kRanks * (timed.in_bytes + timed.out_bytes);
  return runner;
}

absl::StatusOr<StepTime> CollectiveRunner::Step() {
  const Stopwatch watch;
  std::vector<const char*> from;
  std::vector<char*> to;
  for (const std::vector<char>& tile : inputs_) from.push_back(tile.data());
  for (std::vector<char>& tile : outputs_.empty() ? inputs_ : outputs_) to.push_back(tile.data());
  const TiledExchange tiled = {&exchange_, from, to};
  MGC_RETURN_IF_ERROR(RunExchanges({&tiled, 1}, workers_));
  return watch.Read();
}

absl::StatusOr<std::unique_ptr<BenchSide>> CopyRunner::Create(absl::string_view op,
                                                              int64_t elements, DType type,
                                                              int workers) {
  MGC_ASSIGN_OR_RETURN(const Timed timed, TimedExchange(op, elements, type));
  const int64_t bytes = kRanks * (timed.in_bytes + timed.out_bytes) / 2;
  return std::unique_ptr<BenchSide>(new CopyRunner(bytes, workers));
}

absl::StatusOr<StepTime> CopyRunner::Step() {
  const Stopwatch watch;
  workers_.For(static_cast<int64_t>(to_.size()), kCopyGrain, [this](int64_t begin, int64_t end) {
    std::memcpy(to_.data() + begin, from_.data() + begin, static_cast<size_t>(end - begin));
  });
  return watch.Read();
}

}  // namespace mgc
