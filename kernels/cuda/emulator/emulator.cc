#include "kernels/cuda/emulator/emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/emulator/fault.h"

namespace mgc::cuda::emulator {
thread_local Thread current;

namespace {

constexpr size_t kStackBytes = 256 << 10;

enum class At : uint8_t { kRunning, kBlockBarrier, kWarpBarrier, kEnd };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  At at = At::kEnd;
  unsigned mask = 0;
  Dim3 thread;
};

class Block;
thread_local Block* running = nullptr;
thread_local uint64_t seed = 0;

// The fibers of one block at a time, kept from block to block.
class Block {
 public:
  // False when the block could not go on.
  bool Run(const LaunchShape& shape, Dim3 index, const std::function<void()>& body,
           std::mt19937_64* dice);

  void Stop(At at, unsigned mask) {
    Fiber& fiber = *fibers_[static_cast<size_t>(now_)];
    fiber.at = at;
    fiber.mask = mask;
    swapcontext(&fiber.context, &scheduler_);
    current.thread = fiber.thread;
  }
  int now() const { return now_; }
  char* shared() { return shared_; }
  int64_t shared_bytes() const { return shared_bytes_; }
  char* lane_room(int warp, int lane) {
    return &exchange_[static_cast<size_t>(warp * 32 + lane) * 16];
  }

 private:
  static void Enter();
  bool Release();
  bool ReleaseWarp(int first);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  size_t count_ = 0;
  int now_ = 0;
  const std::function<void()>* body_ = nullptr;
  ucontext_t scheduler_;
  std::vector<char> memory_;
  char* shared_ = nullptr;
  int64_t shared_bytes_ = 0;
  std::vector<char> exchange_;
};

void Block::Enter() {
  Block& block = *running;
  (*block.body_)();
  block.fibers_[static_cast<size_t>(block.now_)]->at = At::kEnd;
}

bool Block::Run(const LaunchShape& shape, Dim3 index, const std::function<void()>& body,
                std::mt19937_64* dice) {
  count_ = shape.block;
  body_ = &body;
  while (fibers_.size() < count_) fibers_.push_back(std::make_unique<Fiber>());
  memory_.assign(static_cast<size_t>(shape.shared_bytes) + 128, static_cast<char>(0xff));
  const auto address = reinterpret_cast<uintptr_t>(memory_.data());
  shared_ = memory_.data() + (128 - address % 128) % 128;
  shared_bytes_ = shape.shared_bytes;
  exchange_.assign((count_ + 31) / 32 * 32 * 16, 0);
  for (size_t t = 0; t < count_; ++t) {
    Fiber& fiber = *fibers_[t];
    fiber.at = At::kRunning;
    fiber.thread = {static_cast<unsigned>(t), 0, 0};
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, Enter, 0);
  }
  running = this;
  current.block = index;
  current.block_size = {shape.block, 1, 1};
  current.grid_size = {shape.grid_x, shape.grid_y, shape.grid_z};
  std::vector<int> order(count_);
  std::iota(order.begin(), order.end(), 0);
  while (true) {
    std::shuffle(order.begin(), order.end(), *dice);
    bool ended = true;
    for (int t : order) {
      Fiber& fiber = *fibers_[static_cast<size_t>(t)];
      if (fiber.at == At::kRunning) {
        now_ = t;
        current.thread = fiber.thread;
        swapcontext(&scheduler_, &fiber.context);
      }
      ended = ended && fiber.at == At::kEnd;
    }
    if (ended) return true;
    if (!Release()) return false;
  }
}

// Lets those go on whose barrier all have reached. False when there are none.
bool Block::Release() {
  bool any = false;
  for (size_t first = 0; first < count_; first += 32) any = ReleaseWarp(int(first)) || any;
  if (any) return true;
  for (size_t t = 0; t < count_; ++t) {
    if (fibers_[t]->at != At::kBlockBarrier) {
      Fault("a barrier that not all threads of the block reach");
      return false;
    }
  }
  for (size_t t = 0; t < count_; ++t) fibers_[t]->at = At::kRunning;
  return true;
}

bool Block::ReleaseWarp(int first) {
  bool any = false;
  for (size_t lane = 0; lane < 32 && first + lane < count_; ++lane) {
    const Fiber& fiber = *fibers_[first + lane];
    if (fiber.at != At::kWarpBarrier) continue;
    const unsigned mask = fiber.mask;
    bool all = (mask >> lane & 1) != 0;
    for (size_t other = 0; other < 32; ++other) {
      if ((mask >> other & 1) == 0) continue;
      if (first + other >= count_) continue;  // of a warp that is not full
      const Fiber& at = *fibers_[first + other];
      all = all && at.at == At::kWarpBarrier && at.mask == mask;
    }
    if (!all) continue;
    for (size_t other = 0; other < 32 && first + other < count_; ++other) {
      if ((mask >> other & 1) != 0) fibers_[first + other]->at = At::kRunning;
    }
    any = true;
  }
  return any;
}

thread_local std::unique_ptr<Block> kept;

}  // namespace

void SetSeed(uint64_t new_seed) { seed = new_seed; }

void RunBlocks(const LaunchShape& shape, const std::function<void()>& body) {
  if (!IsLaunchable(shape)) return Fault("a launch that no device takes");
  if (kept == nullptr) kept = std::make_unique<Block>();
  std::mt19937_64 dice(seed);
  std::vector<int64_t> order(static_cast<size_t>(shape.blocks()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::shuffle(order.begin(), order.end(), dice);
  for (int64_t b : order) {
    const auto x = static_cast<unsigned>(b % shape.grid_x);
    const auto y = static_cast<unsigned>(b / shape.grid_x % shape.grid_y);
    const auto z = static_cast<unsigned>(b / shape.grid_x / shape.grid_y);
    if (!kept->Run(shape, {x, y, z}, body, &dice)) {
      kept = nullptr;  // its fibers stand in the middle of something
      return;
    }
  }
}

char* DynamicShared() { return running->shared(); }
int64_t DynamicSharedBytes() { return running->shared_bytes(); }

void BlockBarrier() { running->Stop(At::kBlockBarrier, 0); }
void WarpBarrier(unsigned mask) { running->Stop(At::kWarpBarrier, mask); }

void WarpExchange(unsigned mask, const void* given, int bytes, int from, void* got) {
  const int warp = running->now() / 32;
  std::memcpy(running->lane_room(warp, running->now() % 32), given, static_cast<size_t>(bytes));
  WarpBarrier(mask);
  std::memcpy(got, running->lane_room(warp, from), static_cast<size_t>(bytes));
  WarpBarrier(mask);
}

void WarpGather(unsigned mask, const void* given, int bytes, void* all) {
  const int warp = running->now() / 32;
  std::memcpy(running->lane_room(warp, running->now() % 32), given, static_cast<size_t>(bytes));
  WarpBarrier(mask);
  for (int lane = 0; lane < 32; ++lane) {
    char* const to = static_cast<char*>(all) + lane * bytes;
    const bool in = (mask >> lane & 1) != 0;
    in ? std::memcpy(to, running->lane_room(warp, lane), static_cast<size_t>(bytes))
       : std::memset(to, 0, static_cast<size_t>(bytes));
  }
  WarpBarrier(mask);
}

}  // namespace mgc::cuda::emulator
