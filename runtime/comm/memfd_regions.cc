#include "runtime/comm/memfd_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr size_t kNonceBytes = 16;

absl::Status SystemError(const std::string& what) {
  const int error = errno;
  return absl::ResourceExhaustedError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace

// Mapped memory with a random number behind it. A process number means another process on another
// host, and within another container: the random number alone tells that it is the right memory.
class MemfdRegions::Region {
 public:
  static absl::StatusOr<std::unique_ptr<Region>> Make(int64_t bytes) {
    std::string nonce(kNonceBytes, '\0');
    if (getrandom(&nonce[0], nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
      return SystemError("getrandom");
    }
    const int fd = memfd_create("mgc", MFD_CLOEXEC);
    if (fd < 0) return SystemError("memfd_create");
    auto region = std::unique_ptr<Region>(new Region(fd, WholePages(bytes)));
    if (ftruncate(fd, region->mapped()) != 0) {
      return SystemError(absl::StrCat("growing shared memory to ", region->mapped(), " bytes"));
    }
    MGC_RETURN_IF_ERROR(region->Map());
    std::memcpy(region->nonce(), nonce.data(), nonce.size());
    return region;
  }

  // The region that another process has told the place of.
  static absl::StatusOr<std::unique_ptr<Region>> Open(const std::string& place) {
    const std::vector<std::string> parts = absl::StrSplit(place, ' ');
    int64_t bytes = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &bytes) || bytes < 0 ||
        parts[2].size() != 2 * kNonceBytes) {
      return absl::NotFoundError(absl::StrCat("no shared memory at '", place, "'"));
    }
    // Whatever it is, opening it must have no effect.
    const int fd = open(parts[0].c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return SystemError(absl::StrCat("opening shared memory ", parts[0]));
    auto region = std::unique_ptr<Region>(new Region(fd, bytes));
    struct stat found = {};
    if (fstat(fd, &found) != 0) return SystemError(absl::StrCat("looking at ", parts[0]));
    if (!S_ISREG(found.st_mode) || found.st_size != region->mapped()) {
      return absl::NotFoundError(absl::StrCat(parts[0], " is something else: ", found.st_size,
                                              " bytes, not ", region->mapped()));
    }
    MGC_RETURN_IF_ERROR(region->Map());
    if (std::memcmp(region->nonce(), absl::HexStringToBytes(parts[2]).data(), kNonceBytes) != 0) {
      return absl::NotFoundError(absl::StrCat(parts[0], " is another run's memory"));
    }
    return region;
  }

  ~Region() {
    if (begin_ != nullptr) munmap(begin_, static_cast<size_t>(mapped()));
    Close();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  char* begin() const { return begin_; }
  // The memory stays mapped; nobody else can map it any more.
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  // What Open of another process needs.
  std::string place() const {
    return absl::StrCat("/proc/", getpid(), "/fd/", fd_, " ", bytes_, " ",
                        absl::BytesToHexString({nonce(), kNonceBytes}));
  }

 private:
  Region(int fd, int64_t bytes) : fd_(fd), bytes_(bytes) {}

  absl::Status Map() {
    void* const at =
        mmap(nullptr, static_cast<size_t>(mapped()), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED) {
      return SystemError(absl::StrCat("mapping ", mapped(), " bytes of shared memory"));
    }
    begin_ = static_cast<char*>(at);
    return absl::OkStatus();
  }
  char* nonce() const { return begin_ + bytes_; }
  int64_t mapped() const { return bytes_ + kRegionPage; }

  int fd_;
  const int64_t bytes_;  // whole pages, before that of the random number
  char* begin_ = nullptr;
};

MemfdRegions::MemfdRegions(std::vector<bool> reachable, Exchange exchange,
                           std::function<absl::Status()> check)
    : reachable_(std::move(reachable)), exchange_(std::move(exchange)), check_(std::move(check)) {}

MemfdRegions::~MemfdRegions() = default;

absl::StatusOr<char*> MemfdRegions::Make(int64_t bytes) {
  MGC_ASSIGN_OR_RETURN(own_, Region::Make(bytes));
  return own_->begin();
}

absl::Status MemfdRegions::Publish() {
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> places,
                       exchange_(own_ != nullptr ? own_->place() : std::string()));
  if (places.size() != reachable_.size()) {
    return absl::InternalError(absl::StrCat("an exchange between ", reachable_.size(),
                                            " processes gave ", places.size(), " strings"));
  }
  for (size_t p = 0; p < places.size(); ++p) {
    if (own_ != nullptr && places[p] == own_->place()) {
      self_ = static_cast<int>(p);
      regions_.push_back(absl::NotFoundError("it is this process's own"));
    } else if (reachable_[p]) {
      regions_.push_back(Region::Open(places[p]));
    } else {
      regions_.push_back(absl::NotFoundError("its memory is out of reach"));
    }
  }
  MGC_RETURN_IF_ERROR(exchange_("").status());
  for (auto& region : regions_) {
    if (region.ok()) (*region)->Close();
  }
  if (own_ != nullptr) own_->Close();
  return absl::OkStatus();
}

absl::StatusOr<char*> MemfdRegions::Of(int process) {
  if (process == self_) return own_->begin();
  const auto& region = regions_[static_cast<size_t>(process)];
  if (region.ok()) return (*region)->begin();
  return Annotate(region.status(), absl::StrCat("process ", process));
}

absl::StatusOr<std::vector<bool>> MemfdRegions::FindReachable(int self, const std::string& host,
                                                              const Exchange& exchange) {
  const auto probe = Region::Make(0);
  MGC_ASSIGN_OR_RETURN(
      const std::vector<std::string> places,
      exchange(absl::StrCat(probe.ok() ? (*probe)->place() : std::string(), "\n", host)));
  std::string reached;  // a digit per process
  for (size_t p = 0; p < places.size(); ++p) {
    const std::vector<std::string> parts = absl::StrSplit(places[p], absl::MaxSplits('\n', 1));
    const bool here = parts.size() == 2 && parts[1] == host && Region::Open(parts[0]).ok();
    reached += p == static_cast<size_t>(self) || here ? '1' : '0';
  }
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange(reached));
  // Those that reach the same reach each other, as each reaches itself.
  std::vector<bool> both(places.size());
  for (size_t p = 0; p < both.size() && p < all.size(); ++p) both[p] = all[p] == reached;
  return both;
}

}  // namespace mgc
