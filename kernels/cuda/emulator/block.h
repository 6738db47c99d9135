// The blocks of one launch, executed by one thread of the host.

#ifndef MGC_KERNELS_CUDA_EMULATOR_BLOCK_H_
#define MGC_KERNELS_CUDA_EMULATOR_BLOCK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/access.h"
#include "kernels/cuda/emulator/dice.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fiber.h"

namespace mgc::cuda::emulator {

// What a warp's lanes do together. Lanes in `mask` that exist meet.
struct WarpOp {
  enum class Kind : uint8_t { kBarrier, kExchange, kGather };

  Kind kind = Kind::kBarrier;
  unsigned mask = 0;
  int from = 0;  // kExchange: whose value this lane gets
  int bytes = 0;
  const void* given = nullptr;
  void* got = nullptr;  // kGather: of 32 lanes
};

// One block at a time. Fibers are taken by threads when these begin, and given back when they end:
// where nobody stops, one fiber runs all threads.
class Block {
 public:
  // How a block's threads are ordered, and blocks: by the launch's seed. Of others the order is
  // drawn again after every barrier, and warps run ahead of each other or go side by side.
  static constexpr uint64_t kAscending = 0, kDescending = 1;

  Block();
  ~Block();

  // "" or what went wrong; then threads are left standing where they were, and the Block is of no
  // use any more.
  std::string Run(const LaunchShape& shape, Dim3 index, const std::function<void()>& body,
                  uint64_t seed, Dice* dice);

  // What device code tells of its accesses, where it does; the variables that kernels declare.
  AccessWatch* watch() { return &watch_; }
  void set_variables(std::vector<Range> variables) { variables_ = std::move(variables); }

  // For the running thread. What they do not return from they have found wrong.
  void StopForBlock(Site site);
  void StopForWarp(const WarpOp& op, Site site);
  void Access(const void* at, size_t bytes, bool writes, const void* place);
  char* shared() { return shared_; }
  int64_t shared_bytes() const { return shared_bytes_; }

 private:
  enum class At : uint8_t { kStart, kRunning, kBlockBarrier, kWarpBarrier, kEnd };

  struct Member {  // a thread of the block
    At at = At::kStart;
    Site site;
    WarpOp op;
    Fiber* fiber = nullptr;
  };

  static void Enter();
  void Work(Fiber* fiber);
  bool BeginNext();
  void Stop(At at, Site site);
  void Note(const std::string& what);
  [[noreturn]] void Leave();
  void RunPhase(size_t warp, uint64_t seed, Dice* dice);
  bool ReleaseWarp(size_t warp);
  bool ReleaseGroup(size_t warp, unsigned mask);
  void Hand(size_t warp, unsigned mask);
  bool ReleaseBlock();
  void MakeShared(int64_t bytes);
  void CheckShared();
  std::string Where() const;
  std::string Standing() const;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Member> members_;
  size_t now_ = 0;                // the member that runs
  Fiber* entering_ = nullptr;     // that is resumed the first time
  std::vector<size_t> to_start_;  // members of the running warp, the next one last
  std::vector<size_t> order_;     // of the running phase
  const std::function<void()>* body_ = nullptr;
  std::string wrong_;
  std::vector<char> memory_;
  char* shared_ = nullptr;
  int64_t shared_bytes_ = 0;
  AccessWatch watch_;
  std::vector<Range> variables_;
};

// The one whose thread runs; there must be one.
Block& RunningBlock();

// Called by what the compiler has put into device code. `place` is in the code.
void ToldOfAccess(const void* at, size_t bytes, bool writes, const void* place);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_BLOCK_H_
