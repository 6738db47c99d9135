#include "kernels/cuda/emulator/access.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/cuda/emulator/fault.h"

namespace mgc::cuda::emulator {
namespace {

constexpr size_t kWarpSize = 32;

std::atomic<bool>& Enabled() {
  static std::atomic<bool> enabled{false};
  return enabled;
}

}  // namespace

bool AccessWatch::enabled() { return Enabled().load(std::memory_order_relaxed); }
void AccessWatch::Enable() { Enabled().store(true, std::memory_order_relaxed); }

void AccessWatch::BeginLaunch(const std::vector<Memory::Region>& allocations) {
  ++launch_;
  std::vector<Watched> next;
  for (const Memory::Region& region : allocations) {
    next.push_back({region, false, {}});
    for (Watched& old : allocations_) {
      if (old.region.begin == region.begin && old.region.end == region.end) {
        next.back().pages.swap(old.pages);
      }
    }
  }
  allocations_ = std::move(next);
}

void AccessWatch::BeginBlock(size_t threads, const std::vector<Range>& shared) {
  ++block_;
  epoch_ = 0;
  clocks_.assign(threads * kWarpSize, 0);
  for (size_t t = 0; t < threads; ++t) Clock(t, t % kWarpSize) = 1;
  const bool same = shared.size() == shared_.size() &&
                    std::equal(shared.begin(), shared.end(), shared_.begin(),
                               [](const Range& r, const Watched& w) {
                                 return r.begin() == w.region.begin && r.end() == w.region.end;
                               });
  if (same) return;
  shared_.clear();
  for (const Range& range : shared) {
    shared_.push_back(
        {{range.begin(), range.end(), range.begin(), range.end(), "shared memory"}, true, {}});
  }
}

void AccessWatch::MeetWarp(size_t first_thread, size_t lanes, unsigned mask) {
  const auto in = [&](size_t lane) { return lane < lanes && (mask >> lane & 1) != 0; };
  uint32_t joined[kWarpSize] = {};
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    for (size_t of = 0; in(lane) && of < kWarpSize; ++of) {
      joined[of] = std::max(joined[of], Clock(first_thread + lane, of));
    }
  }
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    if (!in(lane)) continue;
    std::copy(joined, joined + kWarpSize, &Clock(first_thread + lane, 0));
    ++Clock(first_thread + lane, lane);
  }
}

AccessWatch::Shadow* AccessWatch::ShadowOf(Watched* watched, size_t byte) {
  constexpr size_t kPage = std::tuple_size_v<Page>;
  const size_t page = byte / kPage;
  if (watched->pages.size() <= page) watched->pages.resize(page + 1);
  if (watched->pages[page] == nullptr) watched->pages[page] = std::make_unique<Page>();
  return &(*watched->pages[page])[byte % kPage];
}

AccessWatch::Watched* AccessWatch::Find(uintptr_t at) {
  for (Watched& watched : shared_) {
    if (watched.region.begin <= at && at < watched.region.end) return &watched;
  }
  const auto after = std::upper_bound(
      allocations_.begin(), allocations_.end(), at,
      [](uintptr_t address, const Watched& w) { return address < w.region.guards_begin; });
  if (after == allocations_.begin() || at >= (after - 1)->region.guards_end) return nullptr;
  return &*(after - 1);
}

std::string AccessWatch::Access(size_t thread, const void* at, size_t bytes, bool writes) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  Watched* const watched = Find(begin);
  if (watched == nullptr) return "";
  const Memory::Region& region = watched->region;
  const std::string does = writes ? "writes " : "reads ";
  if (begin < region.begin) {
    return Text(does, bytes, " bytes ", region.begin - begin, " before ", region.name);
  }
  if (begin + bytes > region.end) {
    return Text(does, bytes, " bytes at ", begin - region.begin, ", behind the end of ",
                region.name);
  }
  for (size_t i = begin - region.begin; i < begin - region.begin + bytes; ++i) {
    const std::string wrong = AccessByte(thread, writes, watched->shared, ShadowOf(watched, i));
    if (!wrong.empty()) return Text(does, "bytes of ", region.name, " that ", wrong);
  }
  return "";
}

bool AccessWatch::IsKnown(const Mark& mark, bool shared) const {
  return shared ? mark.block == block_ && mark.block != 0 : mark.launch == launch_;
}

bool AccessWatch::IsBefore(const Mark& mark, size_t thread) const {
  if (mark.block != block_) return false;
  if (mark.epoch < epoch_ || mark.thread == thread) return true;
  if (mark.thread / kWarpSize != thread / kWarpSize) return false;
  return clocks_[thread * kWarpSize + mark.thread % kWarpSize] >= mark.time;
}

std::string AccessWatch::Conflict(const Mark& other, const char* did) const {
  if (other.block != block_) return Text("another block ", did);
  return Text("thread ", other.thread, " ", did, ", and no barrier is between");
}

std::string AccessWatch::AccessByte(size_t thread, bool writes, bool shared, Shadow* shadow) {
  const bool written = IsKnown(shadow->write, shared);
  if (shared && !writes && !written) return "nobody has written";
  if (written && !IsBefore(shadow->write, thread)) {
    return Conflict(shadow->write, "has written");
  }
  for (const Mark* read : {&shadow->read, &shadow->other_read}) {
    if (writes && IsKnown(*read, shared) && !IsBefore(*read, thread)) {
      return Conflict(*read, "has read");
    }
  }
  const Mark now{launch_, block_, epoch_, clocks_[thread * kWarpSize + thread % kWarpSize],
                 static_cast<uint16_t>(thread)};
  if (writes) {
    *shadow = {now, {}, {}};
  } else {
    if (shadow->read.thread != thread || shadow->read.block != block_) {
      shadow->other_read = shadow->read;
    }
    shadow->read = now;
  }
  return "";
}

}  // namespace mgc::cuda::emulator
