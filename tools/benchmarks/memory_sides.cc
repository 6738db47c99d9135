#include "tools/benchmarks/memory_sides.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "kernels/cpu/matmul/gemm.h"
#include "runtime/run/arena.h"
#include "runtime/run/workers.h"
#include "tools/launch/run_memory.h"

namespace mgc {
namespace {

constexpr int64_t kRows = 1024, kInner = 768, kColumns = 3072;
constexpr int64_t kLayers = 12;
constexpr int64_t kLayerFloats = kRows * kInner + kInner * kColumns + kRows * kColumns;
constexpr int64_t kCopyBytes = int64_t{64} << 20;
constexpr int64_t kCopies = 20;
constexpr int64_t kCopyGrain = 1 << 20;

// `bytes` of either kind, all of them touched.
class Block {
 public:
  static absl::StatusOr<Block> Create(MemoryKind kind, int64_t bytes, Parallel& parallel) {
    Block block;
    if (kind == MemoryKind::kPrivate) {
      MGC_ASSIGN_OR_RETURN(Arena arena, Arena::Create(bytes, parallel));
      block.arena_.emplace(std::move(arena));
    } else {
      MGC_ASSIGN_OR_RETURN(SharedMemory shared, SharedMemory::Create(bytes));
      block.shared_.emplace(std::move(shared));
    }
    float* const begin = reinterpret_cast<float*>(block.data());
    std::fill(begin, begin + bytes / static_cast<int64_t>(sizeof(float)), 0.01f);
    return block;
  }

  char* data() const { return arena_.has_value() ? arena_->data() : shared_->data(); }

 private:
  absl::optional<Arena> arena_;
  absl::optional<SharedMemory> shared_;
};

class Products : public BenchSide {
 public:
  explicit Products(int workers)
      : workers_(workers, workers),
        scratch_(static_cast<size_t>(
            cpu::GemmWorkspaceFloats(kRows, kColumns, kInner, workers_.width()))) {}
  absl::Status Open(MemoryKind kind) {
    constexpr int64_t kBytes = kLayers * kLayerFloats * static_cast<int64_t>(sizeof(float));
    MGC_ASSIGN_OR_RETURN(Block block, Block::Create(kind, kBytes, workers_));
    block_.emplace(std::move(block));
    return absl::OkStatus();
  }
  absl::StatusOr<StepTime> Step() override {
    cpu::GemmShape shape;
    shape.m = kRows;
    shape.n = kColumns;
    shape.k = kInner;
    shape.a = cpu::DenseStrides(kRows, kInner);
    shape.b = cpu::DenseStrides(kInner, kColumns);
    shape.c = cpu::DenseStrides(kRows, kColumns);
    const Stopwatch watch;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      float* const a = reinterpret_cast<float*>(block_->data()) + layer * kLayerFloats;
      float* const b = a + kRows * kInner;
      cpu::Gemm(workers_, shape, a, b, nullptr, b + kInner * kColumns, scratch_.data());
    }
    return watch.Read();
  }

 private:
  Workers workers_;
  std::vector<float> scratch_;
  absl::optional<Block> block_;
};

class Copies : public BenchSide {
 public:
  explicit Copies(int workers) : workers_(workers, workers) {}
  absl::Status Open(MemoryKind kind) {
    MGC_ASSIGN_OR_RETURN(Block block, Block::Create(kind, 2 * kCopyBytes, workers_));
    block_.emplace(std::move(block));
    return absl::OkStatus();
  }
  absl::StatusOr<StepTime> Step() override {
    char* const from = block_->data();
    char* const to = from + kCopyBytes;
    const Stopwatch watch;
    for (int64_t i = 0; i < kCopies; ++i) {
      workers_.For(kCopyBytes, kCopyGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      });
    }
    return watch.Read();
  }

 private:
  Workers workers_;
  absl::optional<Block> block_;
};

template <typename Side>
absl::StatusOr<std::unique_ptr<BenchSide>> SideIn(MemoryKind kind, int workers) {
  auto side = std::make_unique<Side>(workers);
  MGC_RETURN_IF_ERROR(side->Open(kind));
  return side;
}

}  // namespace

absl::string_view NameOf(MemoryKind kind) {
  return kind == MemoryKind::kPrivate ? "private memory" : "shared memory";
}

absl::StatusOr<std::unique_ptr<BenchSide>> ProductsIn(MemoryKind kind, int workers) {
  return SideIn<Products>(kind, workers);
}

absl::StatusOr<std::unique_ptr<BenchSide>> CopiesIn(MemoryKind kind, int workers) {
  return SideIn<Copies>(kind, workers);
}

}  // namespace mgc
