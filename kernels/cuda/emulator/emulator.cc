#include "kernels/cuda/emulator/emulator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/block.h"
#include "kernels/cuda/emulator/dice.h"
#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/launch.h"
#include "kernels/cuda/emulator/statics.h"

namespace mgc::cuda::emulator {

thread_local Thread current;

namespace {

constexpr int kUndefinedByte = 0xff;

// Kept from launch to launch for its stacks.
thread_local std::unique_ptr<Block> kept;

std::vector<int64_t> OrderOfBlocks(int64_t count, uint64_t seed, Dice* dice) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (seed == Block::kDescending) std::reverse(order.begin(), order.end());
  if (seed != Block::kAscending && seed != Block::kDescending) dice->Shuffle(&order);
  return order;
}

}  // namespace

std::string RunLaunch(const LaunchShape& shape, uint64_t seed, const void* kernel,
                      const std::function<void()>& body,
                      const std::vector<Memory::Region>& allocations) {
  if (kept == nullptr) kept = std::make_unique<Block>();
  Dice dice(seed);
  const std::vector<Range> variables = RangesOf(Statics::Get().Of(kernel));
  kept->set_variables(variables);
  if (AccessWatch::enabled()) kept->watch()->BeginLaunch(allocations);
  for (int64_t b : OrderOfBlocks(shape.blocks(), seed, &dice)) {
    const auto x = static_cast<unsigned>(b % shape.grid_x);
    const auto y = static_cast<unsigned>(b / shape.grid_x % shape.grid_y);
    const auto z = static_cast<unsigned>(b / shape.grid_x / shape.grid_y);
    for (const Range& v : variables) std::memset(const_cast<void*>(v.at), kUndefinedByte, v.bytes);
    std::string wrong = kept->Run(shape, {x, y, z}, body, seed, &dice);
    if (wrong.empty()) continue;
    kept = nullptr;  // its fibers stand in the middle of something
    return wrong;
  }
  return "";
}

void RunBlocks(const LaunchShape& shape, const std::function<void()>& body) {
  if (!IsLaunchable(shape)) return Fault("a launch that no device takes");
  const std::string wrong = RunLaunch(shape, SeedOfThread(), nullptr, body, {});
  if (!wrong.empty()) Fault(wrong);
}

char* DynamicShared() { return RunningBlock().shared(); }
int64_t DynamicSharedBytes() { return RunningBlock().shared_bytes(); }

void BlockBarrier(Site site) { RunningBlock().StopForBlock(site); }

void WarpBarrier(unsigned mask, Site site) {
  RunningBlock().StopForWarp({WarpOp::Kind::kBarrier, mask, 0, 0, nullptr, nullptr}, site);
}

void WarpExchange(unsigned mask, const void* given, int bytes, int from, void* got, Site site) {
  RunningBlock().StopForWarp({WarpOp::Kind::kExchange, mask, from, bytes, given, got}, site);
}

void WarpGather(unsigned mask, const void* given, int bytes, void* all, Site site) {
  RunningBlock().StopForWarp({WarpOp::Kind::kGather, mask, 0, bytes, given, all}, site);
}

}  // namespace mgc::cuda::emulator
