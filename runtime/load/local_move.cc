#include "runtime/load/local_move.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "runtime/load/exchange.h"

namespace mgc {
namespace {

constexpr int64_t kHandOver = 16384;  // elements worth handing to another thread

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
