// One way in which a collective moves between processes.

#ifndef MGC_RUNTIME_COMM_FLOW_H_
#define MGC_RUNTIME_COMM_FLOW_H_

#include <cstddef>

#include "kernels/parallel.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/link.h"
#include "runtime/comm/share.h"
#include "runtime/comm/shared_regions.h"

namespace mgc {

// What there is beyond messages to move collectives by.
struct FlowMeans {
  RegionBases arenas;                   // where processes have theirs, as far as this one has them
  AllReduceLibrary* library = nullptr;  // that does the all-reduces; null: none
  Parallel* parallel = nullptr;         // threads that share what is done here
};

// The largest collective to be moved.
struct FlowRoom {
  size_t parts = 0;    // exchanges
  size_t stops = 0;    // processes
  size_t members = 0;  // ranks of all of them, where all are in reach
};

class Flow {
 public:
  virtual ~Flow() = default;
  // `share` must outlive the flow's end.
  virtual void Begin(const Share& share, Link& link) = 0;
  // Does what can be done now; whether that was anything. One thread at a time.
  virtual bool Advance() = 0;
  virtual bool done() const = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_FLOW_H_
