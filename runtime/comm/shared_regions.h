// Memory that the processes of a host have in common: one region a process, which all of them can
// reach. Channels lie in such regions, and arenas.

#ifndef MGC_RUNTIME_COMM_SHARED_REGIONS_H_
#define MGC_RUNTIME_COMM_SHARED_REGIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mgc {

// Regions are whole pages of so many bytes, also on machines with larger ones.
inline constexpr int64_t kRegionPage = 4096;
inline int64_t WholePages(int64_t bytes) {
  return (bytes + kRegionPage - 1) / kRegionPage * kRegionPage;
}

// Who makes it, a launcher decides.
class SharedRegions {
 public:
  virtual ~SharedRegions() = default;
  virtual int processes() const = 0;
  // Whether a process can have this one's region, and this one its; itself it can. Processes that
  // reach each other reach the same others.
  virtual bool Reaches(int process) const = 0;
  // This process's region: zeroed, aligned to a page. Once, or not at all.
  virtual absl::StatusOr<char*> Make(int64_t bytes) = 0;
  // To be called when it is filled, by all processes, also by those without a region: others may
  // have it now.
  virtual absl::Status Publish() = 0;
  // Another process's region, waited for until it is published.
  virtual absl::StatusOr<char*> Of(int process) = 0;
  // The error that ends the run, of whichever process.
  virtual absl::Status Check() = 0;
};

// Where this process has the regions of all, by process; null for those that it has not. Empty:
// none.
using RegionBases = std::vector<char*>;

// Whether process `self` has another one in reach; if not it needs no region.
bool ReachesOthers(const SharedRegions& regions, int self);

// Of regions that have been published: null for processes out of reach; empty where all others are.
absl::StatusOr<RegionBases> BasesOf(SharedRegions& regions, int self);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_SHARED_REGIONS_H_
