// A collective between processes, moved the way that suits it: a line of processes, or straight.

#ifndef MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_
#define MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_

#include <cstddef>

#include "absl/types/span.h"
#include "runtime/comm/direct_flow.h"
#include "runtime/comm/line_flow.h"
#include "runtime/comm/link.h"
#include "runtime/comm/routes.h"
#include "runtime/comm/share.h"

namespace mgc {

class CollectiveFlow {
 public:
  // Of up to `parts` exchanges and `stops` processes.
  CollectiveFlow(size_t parts, size_t stops) : share_(parts), direct_(stops) {}

  // The spans, as in Share, and the route must stay until the flow has ended.
  void Begin(absl::Span<const TiledExchange> exchanges, const Route& route, Link& link);
  // Does what can be done now; whether that was anything. One thread at a time.
  bool Advance() { return is_direct_ ? direct_.Advance() : line_.Advance(); }
  bool done() const { return is_direct_ ? direct_.done() : line_.done(); }
  // The process whose messages or room it needs to go on.
  int waits_for() const;

 private:
  Share share_;
  LineFlow line_;
  DirectFlow direct_;
  bool is_direct_ = false;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_
