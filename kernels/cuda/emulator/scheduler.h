// What the emulated devices have to do, and in which order it does it.

#ifndef MGC_KERNELS_CUDA_EMULATOR_SCHEDULER_H_
#define MGC_KERNELS_CUDA_EMULATOR_SCHEDULER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/memory.h"

namespace mgc::cuda::emulator {

// What does one item after the other: a stream, or a branch of a graph.
struct Track {
  int device = 0;
  int64_t number = 0;
  uint64_t preference = 0;
  uint64_t issued = 0;  // items
};

// How far tracks have come, by their numbers: what is before something.
using Clock = std::map<int64_t, uint64_t>;

struct Work {
  std::string what;  // "launch 3", as the begin of a sentence
  std::function<void()> run;
  std::vector<Range> ranges;  // that are known: of a kernel the bytes its arguments point to
  bool on_host = false;       // a function of the host's: run by the thread for those
};

struct Item {
  Work work;
  std::shared_ptr<Track> track;  // until it is done
  Clock clock;                   // of what is before it, and itself
  uint64_t number = 0;           // how many were issued before
  int waits = 0;
  bool done = false;
  std::chrono::steady_clock::time_point ended;
  std::vector<std::shared_ptr<Item>> next;  // which wait for it
};
using ItemPtr = std::shared_ptr<Item>;

// Calls hold the mutex of the runtime; what runs does not.
class Scheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit Scheduler(std::mutex* mutex) : mutex_(mutex) {}

  void Seed(uint64_t seed);
  std::shared_ptr<Track> NewTrack(int device);

  // To be done after all of `before`, nulls left out. A fault if it uses bytes that something uses
  // which is neither before it nor known to the host to be done.
  ItemPtr Issue(Work work, const std::shared_ptr<Track>& track, const std::vector<ItemPtr>& before);

  // Does what must be done until `item` is, and maybe more. The host then knows it is done.
  void Finish(Lock* lock, const ItemPtr& item);
  void FinishAll(Lock* lock);
  // All that one device has to do.
  void FinishDevice(Lock* lock, int device);
  // The host has asked, and been told that it is done.
  void HostKnows(const Item& item);
  // Does one thing, if there is any that can be.
  void Step(Lock* lock);

  // What is not done and uses bytes of the range: "" or its name.
  std::string UserOf(const Range& range) const;

 private:
  struct Access {
    Range range;
    int64_t track = 0;
    uint64_t at = 0;
    std::string what;
  };

  bool IsKnown(const Access& access, const Clock& clock) const;
  void CheckOrder(const Item& item);
  ItemPtr TakeNext(bool on_host);
  void Do(Lock* lock, const ItemPtr& item);
  void RunHostFunctions();

  std::mutex* const mutex_;
  std::condition_variable changed_;
  std::mt19937_64 dice_{0};
  std::vector<std::weak_ptr<Track>> tracks_;
  int64_t tracks_made_ = 0;
  uint64_t issued_ = 0;
  std::map<uint64_t, ItemPtr> pending_;  // in the order of issue
  std::vector<ItemPtr> ready_;
  std::vector<ItemPtr> host_functions_;  // not done
  bool has_host_thread_ = false;
  Clock host_;  // what the host knows to be done
  std::vector<Access> accesses_;
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_SCHEDULER_H_
