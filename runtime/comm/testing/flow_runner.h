// Runs collectives between processes and looks at what must come out of them: what RunExchanges
// makes of all members' tiles at once, bit for bit. For tests of every kind of link.
//
// Each process runs its share and looks at what its own members have got.

#ifndef MGC_RUNTIME_COMM_TESTING_FLOW_RUNNER_H_
#define MGC_RUNTIME_COMM_TESTING_FLOW_RUNNER_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/flow.h"
#include "runtime/comm/link.h"
#include "runtime/comm/routes.h"
#include "runtime/comm/share.h"
#include "runtime/comm/shared_regions.h"
#include "runtime/comm/testing/flow_cases.h"

namespace mgc {

// Channels between any two processes, both ways, of both kinds that collectives use, that begin or
// end in `self`; one set of them for each lane, so that as many threads can run flows at the same
// time.
std::vector<ChannelKey> FlowChannels(int processes, int self, int lanes);

// The groups of any two or more processes that `self` is in, so often as there are lanes: by the
// set of processes as bits, and the lane.
std::vector<LibraryGroupKey> FlowLibraryGroups(int processes, int self, int lanes);

// The share of one process in flows over a link.
class FlowRunner {
 public:
  // Over the channels of one lane. `link` is, or will be, open for `channels`; both must outlive
  // the runner. `seed` is the processes' own, of delays.
  FlowRunner(Link& link, const std::vector<ChannelKey>& channels, int self, int lane, uint64_t seed)
      : link_(link), channels_(channels), self_(self), lane_(lane), delays_(seed) {}
  // Has tiles lie in the processes' regions, each lane's in a part of its own, so that cases may be
  // of MappedFlow: those that are drawn now and then are.
  void Map(const RegionBases& bases) { bases_ = bases; }

  // Cases go through a library from now on, which is, or will be, open for `groups`
  // (FlowLibraryGroups). Both must outlive the runner.
  void Use(AllReduceLibrary& library, const std::vector<LibraryGroupKey>& groups) {
    library_ = &library;
    groups_ = &groups;
  }

  // Runs a case, if this process is in it, with tiles drawn from `seed`, some `times` one after the
  // other. Internal where a tile is not what it should be; the link's error. Of several threads one
  // at a time.
  absl::Status Run(const FlowCase& c, int times, uint64_t seed);
  // `cases` random cases, twice each, drawn from `seed`.
  absl::Status RunCases(int processes, int cases, uint64_t seed);

 private:
  class Tiles;

  Route RouteOf(const FlowCase& c) const;
  // What the flow's Begin takes behind the share.
  absl::Status RunFlow(Flow& flow, const Share& share);
  size_t LibraryGroupOf(const FlowCase& c) const;
  absl::Status Move(const FlowCase& c, const Route& route, std::vector<Tiles>* tiles);

  Link& link_;
  const std::vector<ChannelKey>& channels_;
  const int self_;
  const int lane_;
  RegionBases bases_;
  std::mt19937_64 delays_;
  AllReduceLibrary* library_ = nullptr;
  const std::vector<LibraryGroupKey>* groups_ = nullptr;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TESTING_FLOW_RUNNER_H_
