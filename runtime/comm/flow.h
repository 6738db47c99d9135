// One way in which a collective moves between processes.

#ifndef MGC_RUNTIME_COMM_FLOW_H_
#define MGC_RUNTIME_COMM_FLOW_H_

#include "runtime/comm/link.h"
#include "runtime/comm/share.h"

namespace mgc {

class Flow {
 public:
  virtual ~Flow() = default;
  // `share` must outlive the flow's end.
  virtual void Begin(const Share& share, Link& link) = 0;
  // Does what can be done now; whether that was anything. One thread at a time.
  virtual bool Advance() = 0;
  virtual bool done() const = 0;
  // The stop whose messages, room or work it needs to go on.
  virtual int waits_for() const = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_FLOW_H_
