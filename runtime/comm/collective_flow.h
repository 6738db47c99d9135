// A collective between processes, moved the way that suits it: through memory that all of them
// have, along a line, straight, or by a library that has been asked for.

#ifndef MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_
#define MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_

#include <cstddef>

#include "absl/types/span.h"
#include "runtime/comm/direct_flow.h"
#include "runtime/comm/flow.h"
#include "runtime/comm/library_flow.h"
#include "runtime/comm/line_flow.h"
#include "runtime/comm/link.h"
#include "runtime/comm/mapped_flow.h"
#include "runtime/comm/routes.h"
#include "runtime/comm/share.h"

namespace mgc {

class CollectiveFlow {
 public:
  // `means` must outlive the flow.
  CollectiveFlow(const FlowRoom& room, const FlowMeans& means);

  // The spans, as in Share, and the route must stay until the flow has ended.
  void Begin(absl::Span<const TiledExchange> exchanges, const Route& route, Link& link);
  // Does what can be done now; whether that was anything. One thread at a time.
  bool Advance() { return way_->Advance(); }
  bool done() const { return way_->done(); }

 private:
  Flow& WayOf(const Share& share);

  const FlowMeans& means_;
  Share share_;
  LineFlow line_;
  DirectFlow direct_;
  MappedFlow mapped_;
  LibraryFlow library_;
  Flow* way_ = &line_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_
