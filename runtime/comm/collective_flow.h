// A collective between processes, moved the way that suits it: along a line, straight, in halves by
// the two that there are, or by a library that has been asked for.

#ifndef MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_
#define MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/direct_flow.h"
#include "runtime/comm/library_flow.h"
#include "runtime/comm/line_flow.h"
#include "runtime/comm/link.h"
#include "runtime/comm/pair_flow.h"
#include "runtime/comm/routes.h"
#include "runtime/comm/share.h"

namespace mgc {

class CollectiveFlow {
 public:
  // Of up to `parts` exchanges and `stops` processes.
  CollectiveFlow(size_t parts, size_t stops) : share_(parts), direct_(stops) {}

  // The spans, as in Share, and the route must stay until the flow has ended. `library`: of
  // all-reduces, which go through it; null: none does.
  void Begin(absl::Span<const TiledExchange> exchanges, const Route& route, Link& link,
             AllReduceLibrary* library = nullptr);
  // Does what can be done now; whether that was anything. One thread at a time.
  bool Advance();
  bool done() const;
  // The process whose messages or room it needs to go on.
  int waits_for() const;

 private:
  enum class Way : uint8_t { kLine, kDirect, kPair, kLibrary };
  static Way WayOf(const Share& share);

  Share share_;
  LineFlow line_;
  DirectFlow direct_;
  PairFlow pair_;
  LibraryFlow library_;
  Way way_ = Way::kLine;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_COLLECTIVE_FLOW_H_
