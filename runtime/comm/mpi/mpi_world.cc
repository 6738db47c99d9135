#include "runtime/comm/mpi/mpi_world.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace mgc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kFirstNap(20);
constexpr std::chrono::microseconds kLongestNap(1000);
constexpr int kAbortNaps = 500;
constexpr int kLooks = 8;  // after a nap: Open MPI turns to its sockets at every eighth call only

// What a gathering reads and writes while it is under way. It outlives a caller that gives up.
struct Gathering {
  std::string mine;
  int size = 0;
  std::vector<int> sizes, begins;
  std::string all;
};

// Starts a collective and looks from time to time whether it is over.
absl::Status RunUntil(MpiCommunicator& communicator, Clock::time_point end, absl::string_view what,
                      absl::FunctionRef<int(MPI_Request*)> start) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    std::lock_guard<std::mutex> lock(communicator.mutex);
    MGC_RETURN_IF_ERROR(ToStatus(start(&request), what));
  }
  for (auto nap = kFirstNap;; nap = std::min(2 * nap, kLongestNap)) {
    int done = 0;
    {
      std::lock_guard<std::mutex> lock(communicator.mutex);
      for (int look = 0; look < kLooks && done == 0; ++look) {
        MGC_RETURN_IF_ERROR(ToStatus(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what));
      }
    }
    if (done != 0) return absl::OkStatus();
    if (Clock::now() >= end) {
      return absl::DeadlineExceededError(absl::StrCat(what, ": not all processes have come"));
    }
    std::this_thread::sleep_for(nap);
  }
}

absl::Status GatherAll(MpiCommunicator& communicator, Clock::time_point end, Gathering* g) {
  MGC_RETURN_IF_ERROR(RunUntil(communicator, end, "gathering sizes", [&](MPI_Request* request) {
    return MPI_Iallgather(&g->size, 1, MPI_INT, g->sizes.data(), 1, MPI_INT, communicator.comm,
                          request);
  }));
  int64_t total = 0;
  for (size_t p = 0; p < g->sizes.size(); ++p) {
    g->begins[p] = static_cast<int>(total);
    total += g->sizes[p];
    if (total > std::numeric_limits<int>::max()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("gathering from ", g->sizes.size(), " processes: more than ",
                       std::numeric_limits<int>::max(), " bytes in all"));
    }
  }
  g->all.resize(static_cast<size_t>(total));
  return RunUntil(communicator, end, "gathering", [&](MPI_Request* request) {
    return MPI_Iallgatherv(g->mine.data(), g->size, MPI_BYTE, &g->all[0], g->sizes.data(),
                           g->begins.data(), MPI_BYTE, communicator.comm, request);
  });
}

}  // namespace

MpiWorld::MpiWorld() : communicator_(std::make_unique<MpiCommunicator>()) {}

// What MPI may still use must stay where MPI has not been finalized.
MpiWorld::~MpiWorld() {
  if (!communicator_->kept.empty()) static_cast<void>(communicator_.release());
}

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Create() {
  int initialized = 0;
  MGC_RETURN_IF_ERROR(ToStatus(MPI_Initialized(&initialized), "asking whether MPI is initialized"));
  if (initialized != 0) return absl::FailedPreconditionError("MPI has been initialized before");
  int provided = MPI_THREAD_SINGLE;
  MGC_RETURN_IF_ERROR(ToStatus(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
                               "initializing MPI"));
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        absl::StrCat("this MPI library offers thread level ", provided, " of at least ",
                     MPI_THREAD_SERIALIZED, " (MPI_THREAD_SERIALIZED)"));
  }
  // Duplicates inherit it.
  MGC_RETURN_IF_ERROR(ToStatus(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                               "asking MPI to return errors"));
  auto world = std::unique_ptr<MpiWorld>(new MpiWorld);
  MPI_Comm& comm = world->communicator_->comm;
  MGC_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "duplicating the communicator"));
  MGC_RETURN_IF_ERROR(ToStatus(MPI_Comm_rank(comm, &world->rank_), "asking for the rank"));
  MGC_RETURN_IF_ERROR(ToStatus(MPI_Comm_size(comm, &world->size_), "asking for the size"));
  return world;
}

absl::StatusOr<std::vector<std::string>> MpiWorld::Gather(absl::string_view mine,
                                                          std::chrono::milliseconds deadline) {
  if (mine.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("gathering: ", mine.size(), " bytes of process ", rank_, " are too many"));
  }
  const auto g = std::make_shared<Gathering>();
  g->mine = std::string(mine);
  g->size = static_cast<int>(mine.size());
  g->sizes.resize(static_cast<size_t>(size_));
  g->begins.resize(static_cast<size_t>(size_));
  if (absl::Status status = GatherAll(*communicator_, Clock::now() + deadline, g.get());
      !status.ok()) {
    std::lock_guard<std::mutex> lock(communicator_->mutex);
    communicator_->kept.push_back(g);
    return Annotate(status, absl::StrCat("process ", rank_, " of ", size_));
  }
  std::vector<std::string> strings;
  for (size_t p = 0; p < g->sizes.size(); ++p) {
    strings.push_back(
        g->all.substr(static_cast<size_t>(g->begins[p]), static_cast<size_t>(g->sizes[p])));
  }
  return strings;
}

absl::Status MpiWorld::Finalize() {
  std::lock_guard<std::mutex> lock(communicator_->mutex);
  MGC_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_free(&communicator_->comm), "giving the communicator back"));
  MGC_RETURN_IF_ERROR(ToStatus(MPI_Finalize(), "finalizing MPI"));
  communicator_->kept.clear();
  return absl::OkStatus();
}

void MpiWorld::Abort(int code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  // Another thread may hang in Finalize, whose peers do not come: it is not waited for.
  std::unique_lock<std::mutex> lock(communicator_->mutex, std::try_to_lock);
  for (int i = 0; i < kAbortNaps && !lock.owns_lock(); ++i) {
    std::this_thread::sleep_for(kLongestNap);
    lock.try_lock();
  }
  MPI_Abort(communicator_->comm, code);
  std::_Exit(code);
}

}  // namespace mgc
