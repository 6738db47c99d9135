// Regions of processes that are objects of one process: for tests.

#ifndef MGC_RUNTIME_COMM_TESTING_HEAP_REGIONS_H_
#define MGC_RUNTIME_COMM_TESTING_HEAP_REGIONS_H_

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/comm/shared_regions.h"

namespace mgc {

// What the processes have in common.
class HeapWorld {
 public:
  explicit HeapWorld(int processes) : regions_(static_cast<size_t>(processes)) {}

  int processes() const { return static_cast<int>(regions_.size()); }
  char* Make(int process, int64_t bytes);
  void Publish(int process);
  char* Of(int process);
  // Ends the run of all processes with an error; the first one counts.
  void Abort(const absl::Status& status);
  absl::Status status();

 private:
  struct Region {
    // Zeroed where it is used: most of a large region is not.
    std::unique_ptr<char, decltype(&std::free)> memory{nullptr, &std::free};
    char* begin = nullptr;
    bool published = false;
  };

  std::mutex mutex_;
  std::condition_variable published_;
  std::vector<Region> regions_;
  absl::Status status_;
};

class HeapRegions : public SharedRegions {
 public:
  HeapRegions(HeapWorld& world, int self) : world_(world), self_(self) {}
  int processes() const override { return world_.processes(); }
  bool Reaches(int /*process*/) const override { return true; }
  absl::StatusOr<char*> Make(int64_t bytes) override { return world_.Make(self_, bytes); }
  absl::Status Publish() override {
    world_.Publish(self_);
    return absl::OkStatus();
  }
  absl::StatusOr<char*> Of(int process) override { return world_.Of(process); }
  absl::Status Check() override { return world_.status(); }

 private:
  HeapWorld& world_;
  const int self_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TESTING_HEAP_REGIONS_H_
