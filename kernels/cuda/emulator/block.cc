#include "kernels/cuda/emulator/block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/sanitizer.h"
#include "kernels/cuda/emulator/statics.h"

namespace mgc::cuda::emulator {
namespace {

constexpr size_t kWarpSize = 32;
constexpr size_t kSharedAlignment = 1024;
constexpr size_t kSharedGuard = 1024;  // bytes behind
constexpr int kUndefinedByte = 0xff;   // of what nobody has written: NaNs
constexpr int kGuardByte = 0xa5;

// The block whose threads run on this thread.
thread_local Block* running = nullptr;
// Whether an access is looked at: what that calls may tell of its own.
thread_local bool in_access = false;

bool Has(unsigned mask, size_t lane) { return (mask >> lane & 1) != 0; }

std::string Hex(unsigned mask) {
  std::ostringstream text;
  text << "0x" << std::hex << mask;
  return text.str();
}

std::string Text(Site site) {
  const char* const slash = std::strrchr(site.file, '/');
  return emulator::Text(slash == nullptr ? site.file : slash + 1, ":", site.line);
}

}  // namespace

Block& RunningBlock() {
  if (running == nullptr) {
    Fault("a word of device code is said outside of a kernel");
    std::abort();
  }
  return *running;
}

void ToldOfAccess(const void* at, size_t bytes, bool writes, const void* place) {
  if (running == nullptr || in_access) return;
  in_access = true;
  running->Access(at, bytes, writes, place);
  in_access = false;
}

Block::Block() = default;

Block::~Block() {
  if (running == this) running = nullptr;
  if (!memory_.empty()) Unpoison(memory_.data(), memory_.size());
}

void Block::Enter() {
  Fiber* const fiber = running->entering_;
  fiber->Begin();
  running->Work(fiber);
}

// What a fiber does: members that have not begun, one after the other, and then nothing until it is
// needed again.
void Block::Work(Fiber* fiber) {
  while (true) {
    while (BeginNext()) {
      members_[now_].fiber = fiber;
      (*body_)();
      members_[now_].at = At::kEnd;
    }
    idle_.push_back(fiber);
    fiber->Yield();
  }
}

bool Block::BeginNext() {
  if (to_start_.empty()) return false;
  now_ = to_start_.back();
  to_start_.pop_back();
  members_[now_].at = At::kRunning;
  current.thread = {static_cast<unsigned>(now_), 0, 0};
  return true;
}

void Block::Stop(At at, Site site) {
  Member& member = members_[now_];
  member.at = at;
  member.site = site;
  member.fiber->Yield();
}

void Block::Note(const std::string& what) {
  if (wrong_.empty()) wrong_ = emulator::Text(Where(), ", thread ", now_, ": ", what);
}

// Nothing on the fiber's stack is ever destroyed.
void Block::Leave() {
  in_access = false;
  Stop(At::kEnd, {});
  std::abort();  // it is not resumed
}

void Block::Access(const void* at, size_t bytes, bool writes, const void* place) {
  {
    const std::string wrong = watch_.Access(now_, at, bytes, writes);
    if (wrong.empty()) return;
    Note(emulator::Text(wrong, ", at ", Statics::Get().PlaceOf(place)));
  }
  Leave();
}

void Block::StopForBlock(Site site) { Stop(At::kBlockBarrier, site); }

void Block::StopForWarp(const WarpOp& op, Site site) {
  if (!Has(op.mask, now_ % kWarpSize)) {
    Note(emulator::Text("takes part at ", Text(site), " in what its mask ", Hex(op.mask),
                        " leaves it out of"));
    Leave();
  }
  members_[now_].op = op;
  Stop(At::kWarpBarrier, site);
}

void Block::MakeShared(int64_t bytes) {
  const size_t all = static_cast<size_t>(bytes) + kSharedAlignment + kSharedGuard;
  if (memory_.size() < all || shared_bytes_ != bytes) {
    if (!memory_.empty()) Unpoison(memory_.data(), memory_.size());
    memory_.assign(all, 0);
    shared_ = memory_.data();
    shared_ += (kSharedAlignment - reinterpret_cast<uintptr_t>(shared_) % kSharedAlignment) %
               kSharedAlignment;
    shared_bytes_ = bytes;
    std::memset(shared_ + bytes, kGuardByte, kSharedGuard);
    Poison(shared_ + bytes, kSharedGuard);
  }
  std::memset(shared_, kUndefinedByte, static_cast<size_t>(bytes));
}

void Block::CheckShared() {
  if (kAddressSanitizer) return;  // which has told the moment it happened
  char* const behind = shared_ + shared_bytes_;
  const auto is_whole = [](char c) { return c == static_cast<char>(kGuardByte); };
  if (std::all_of(behind, behind + kSharedGuard, is_whole)) return;
  wrong_ = emulator::Text(Where(), ": bytes were written behind the ", shared_bytes_,
                          " dynamic shared bytes");
}

std::string Block::Run(const LaunchShape& shape, Dim3 index, const std::function<void()>& body,
                       uint64_t seed, Dice* dice) {
  running = this;
  body_ = &body;
  members_.assign(shape.block, Member());
  MakeShared(shape.shared_bytes);
  current.block = index;
  current.block_size = {shape.block, 1, 1};
  current.grid_size = {shape.grid_x, shape.grid_y, shape.grid_z};
  if (AccessWatch::enabled()) {
    std::vector<Range> shared = variables_;
    shared.push_back({shared_, static_cast<size_t>(shared_bytes_), true});
    watch_.BeginBlock(shape.block, shared);
  }
  std::vector<size_t> warps((shape.block + kWarpSize - 1) / kWarpSize);
  for (size_t w = 0; w < warps.size(); ++w) {
    warps[w] = seed == kDescending ? warps.size() - 1 - w : w;
  }
  const bool drawn = seed != kAscending && seed != kDescending;
  const bool ahead = !drawn || dice->Below(2) == 0;
  do {
    bool any = true;
    while (any) {
      any = false;
      if (drawn) dice->Shuffle(&warps);
      for (size_t warp : warps) {
        do {
          RunPhase(warp, seed, dice);
          if (!wrong_.empty()) return wrong_;
          const bool released = ReleaseWarp(warp);
          if (!wrong_.empty()) return wrong_;
          any = any || released;
          if (!released) break;
        } while (ahead);
      }
    }
  } while (ReleaseBlock());
  if (wrong_.empty()) CheckShared();
  running = nullptr;
  return wrong_;
}

// Runs what can be of a warp until all of it stands somewhere.
void Block::RunPhase(size_t warp, uint64_t seed, Dice* dice) {
  const size_t first = warp * kWarpSize;
  const size_t end = std::min(first + kWarpSize, members_.size());
  order_.clear();
  bool starts = false;
  for (size_t m = first; m < end; ++m) {
    starts = starts || members_[m].at == At::kStart;
    if (members_[m].at <= At::kRunning) order_.push_back(m);
  }
  if (seed == kDescending) std::reverse(order_.begin(), order_.end());
  if (seed != kAscending && seed != kDescending) dice->Shuffle(&order_);
  if (!starts) {
    for (size_t m : order_) {
      now_ = m;
      current.thread.x = static_cast<unsigned>(m);
      members_[m].fiber->Resume();
      if (!wrong_.empty()) return;
    }
    return;
  }
  to_start_.assign(order_.rbegin(), order_.rend());
  while (!to_start_.empty() && wrong_.empty()) {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>(Enter));
      idle_.push_back(fibers_.back().get());
    }
    entering_ = idle_.back();
    idle_.pop_back();
    entering_->Resume();
  }
}

// Lets those lanes go on who all stand at what they do together. False when there are none.
bool Block::ReleaseWarp(size_t warp) {
  const size_t first = warp * kWarpSize;
  bool any = false;
  for (size_t m = first; m < std::min(first + kWarpSize, members_.size()); ++m) {
    if (members_[m].at == At::kWarpBarrier) any = ReleaseGroup(warp, members_[m].op.mask) || any;
    if (!wrong_.empty()) return false;
  }
  return any;
}

bool Block::ReleaseGroup(size_t warp, unsigned mask) {
  const size_t first = warp * kWarpSize;
  const size_t lanes = std::min(kWarpSize, members_.size() - first);
  const Member* one = nullptr;
  for (size_t lane = 0; lane < lanes; ++lane) {  // lanes that a last warp lacks are not waited for
    if (!Has(mask, lane)) continue;
    const Member& member = members_[first + lane];
    if (member.at != At::kWarpBarrier || member.op.mask != mask) return false;
    if (one == nullptr) one = &member;
    if (member.op.kind != one->op.kind || member.op.bytes != one->op.bytes) {
      wrong_ =
          emulator::Text(Where(), ": lanes of warp ", warp, " do different things together, at ",
                         Text(one->site), " and ", Text(member.site));
      return false;
    }
  }
  Hand(warp, mask);
  if (AccessWatch::enabled() && one->op.kind == WarpOp::Kind::kBarrier) {
    watch_.MeetWarp(first, lanes, mask);
  }
  for (size_t lane = 0; lane < lanes; ++lane) {
    if (Has(mask, lane)) members_[first + lane].at = At::kRunning;
  }
  return true;
}

// Gives lanes the values of others; of those who give none something undefined.
void Block::Hand(size_t warp, unsigned mask) {
  const size_t first = warp * kWarpSize;
  const size_t lanes = std::min(kWarpSize, members_.size() - first);
  const auto copy = [&](size_t from, int bytes, void* to) {
    const bool gives = from < lanes && Has(mask, from);
    gives ? std::memcpy(to, members_[first + from].op.given, static_cast<size_t>(bytes))
          : std::memset(to, kUndefinedByte, static_cast<size_t>(bytes));
  };
  for (size_t lane = 0; lane < lanes; ++lane) {
    if (!Has(mask, lane)) continue;
    const WarpOp& op = members_[first + lane].op;
    if (op.kind == WarpOp::Kind::kExchange) copy(static_cast<size_t>(op.from), op.bytes, op.got);
    if (op.kind != WarpOp::Kind::kGather) continue;
    for (size_t from = 0; from < kWarpSize; ++from) {
      char* const to = static_cast<char*>(op.got) + from * static_cast<size_t>(op.bytes);
      if (Has(mask, from)) copy(from, op.bytes, to);
      if (!Has(mask, from) || from >= lanes) std::memset(to, 0, static_cast<size_t>(op.bytes));
    }
  }
}

// False when the block has ended, or can not go on.
bool Block::ReleaseBlock() {
  size_t ended = 0, waiting = 0;
  bool one_place = true;
  for (const Member& member : members_) {
    ended += member.at == At::kEnd ? 1 : 0;
    waiting += member.at == At::kBlockBarrier ? 1 : 0;
    one_place = one_place && member.site == members_[0].site;
  }
  if (ended == members_.size()) return false;
  if (waiting < members_.size() || !one_place) {
    wrong_ = emulator::Text(Where(), ": a barrier that not all threads reach: ", Standing());
    return false;
  }
  for (Member& member : members_) member.at = At::kRunning;
  watch_.MeetBlock();
  return true;
}

std::string Block::Where() const {
  const Dim3& b = current.block;
  return emulator::Text("block (", b.x, ", ", b.y, ", ", b.z, ")");
}

// Where threads are.
std::string Block::Standing() const {
  std::map<std::string, std::pair<size_t, size_t>> groups;  // the first thread and how many
  for (size_t m = 0; m < members_.size(); ++m) {
    const Member& member = members_[m];
    std::string at = "have ended";
    if (member.at == At::kBlockBarrier) at = "wait for the block at " + Text(member.site);
    if (member.at == At::kWarpBarrier) {
      at = emulator::Text("wait for lanes ", Hex(member.op.mask), " at ", Text(member.site));
    }
    ++groups.try_emplace(at, m, 0).first->second.second;
  }
  std::string text;
  for (const auto& [at, group] : groups) {
    text += emulator::Text(text.empty() ? "" : ", ", group.second, " (the first is ", group.first,
                           ") ", at);
  }
  return text;
}

}  // namespace mgc::cuda::emulator
