// Shared memory of processes that some launcher has started on one host, each on its own.
//
// A region is an anonymous file that lives in its owner's memory; peers reach it through the
// owner's file descriptors in /proc. It has no name of its own, so that the kernel frees it with
// the last process that has it, whatever that one dies of.

#ifndef MGC_RUNTIME_COMM_MEMFD_REGIONS_H_
#define MGC_RUNTIME_COMM_MEMFD_REGIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/shared_regions.h"

namespace mgc {

class MemfdRegions : public SharedRegions {
 public:
  // What every process gives, in their order: the launcher's own way of passing short strings. All
  // processes call it, and it waits for them.
  using Exchange = std::function<absl::StatusOr<std::vector<std::string>>(const std::string& mine)>;

  // `reachable` is what FindReachable says; `check` gives the error that ends the run.
  MemfdRegions(std::vector<bool> reachable, Exchange exchange, std::function<absl::Status()> check);
  ~MemfdRegions() override;

  int processes() const override { return static_cast<int>(reachable_.size()); }
  bool Reaches(int process) const override { return reachable_[static_cast<size_t>(process)]; }
  absl::StatusOr<char*> Make(int64_t bytes) override;
  // Exchanges twice: when it returns, all have mapped what they can reach, and nobody needs an
  // owner to be alive.
  absl::Status Publish() override;
  absl::StatusOr<char*> Of(int process) override;
  absl::Status Check() override { return check_(); }

  // By process, whether process `self` and that one reach each other's memory; itself it does. It
  // is an equivalence: what some process cannot reach, none of those that reach it does. Processes
  // whose `host` differs are of different hosts, even where one kernel serves both: what is said of
  // hosts holds for all that they do. Where the kernel gives no such memory, nobody is reached; an
  // error is only that of `exchange`, which is called twice.
  static absl::StatusOr<std::vector<bool>> FindReachable(int self, const std::string& host,
                                                         const Exchange& exchange);

 private:
  class Region;

  const std::vector<bool> reachable_;
  const Exchange exchange_;
  const std::function<absl::Status()> check_;
  std::unique_ptr<Region> own_;
  int self_ = -1;                                                 // where it stands among them
  std::vector<absl::StatusOr<std::unique_ptr<Region>>> regions_;  // by process
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MEMFD_REGIONS_H_
