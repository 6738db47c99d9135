#include "runtime/comm/mpi/mpi_all_reduces.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace mgc {

// What groups have in common.
struct MpiAllReduces::Shared {
  explicit Shared(MpiCommunicator& c) : communicator(c) {}

  MpiCommunicator& communicator;
  absl::Status status;  // with the mutex: the first error
  std::atomic<bool> failed{false};
};

namespace {

constexpr int kTags = 32768;  // which the standard grants

// Of sums of elements of a type.
MPI_Datatype TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return MPI_DOUBLE;
    case DType::kI64:
      return MPI_INT64_T;
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
    case DType::kI8:  // never summed
      break;
  }
  return MPI_FLOAT;
}

// With the mutex. A communicator of some of the world's processes.
absl::StatusOr<MPI_Comm> MakeCommunicator(MPI_Group all, const LibraryGroupKey& key) {
  MPI_Group members = MPI_GROUP_NULL;
  MGC_RETURN_IF_ERROR(ToStatus(
      MPI_Group_incl(all, static_cast<int>(key.processes.size()), key.processes.data(), &members),
      "listing a group's processes"));
  MPI_Comm comm = MPI_COMM_NULL;
  // Nobody sends in MPI_COMM_WORLD, whose ranks and ways with errors are the world's too.
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, members, key.b % kTags, &comm);
  MPI_Group_free(&members);
  MGC_RETURN_IF_ERROR(ToStatus(code, absl::StrCat("making a communicator of processes ",
                                                  absl::StrJoin(key.processes, ", "))));
  return comm;
}

}  // namespace

// Pieces are numbered as they are started; each has two buffers, of what is brought and of what
// becomes of it: libraries have better ways for these than in place.
class MpiAllReduces::Group : public LibraryGroup {
 public:
  Group(Shared& shared, LibraryGroupKey key, MPI_Comm comm)
      : shared_(shared), key_(std::move(key)), comm_(comm) {
    requests_.fill(MPI_REQUEST_NULL);
  }
  ~Group() override {
    std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
    bool in_use = shared_.failed.load(std::memory_order_relaxed);
    for (MPI_Request& request : requests_) {
      int done = 0;
      in_use = in_use || MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0;
    }
    if (!in_use) {
      MPI_Comm_free(&comm_);
    } else if (bytes_ != nullptr) {
      shared_.communicator.kept.push_back(bytes_);
    }
  }

  char* Room() override {
    if (started_ - released_ == kLibraryPieces) return nullptr;
    if (bytes_ == nullptr) {
      bytes_ = std::shared_ptr<char[]>(new char[2 * kLibraryPieces * kLibraryPieceBytes]);
    }
    return At(started_);
  }

  void Start(DType dtype, bool max, int64_t count) override {
    std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
    const uint64_t piece = started_++;
    if (shared_.failed.load(std::memory_order_relaxed)) return;
    Check(MPI_Iallreduce(At(piece), ResultAt(piece), static_cast<int>(count), TypeOf(dtype),
                         max ? MPI_MAX : MPI_SUM, comm_, &requests_[Index(piece)]));
  }

  const char* Result() override {
    if (released_ == started_) return nullptr;
    if (!is_here_) {
      std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
      if (shared_.failed.load(std::memory_order_relaxed)) return nullptr;
      int done = 0;
      const bool good = Check(MPI_Test(&requests_[Index(released_)], &done, MPI_STATUS_IGNORE));
      is_here_ = good && done != 0;
    }
    return is_here_ ? ResultAt(released_) : nullptr;
  }

  void Release() override {
    ++released_;
    is_here_ = false;
  }

 private:
  static size_t Index(uint64_t piece) { return static_cast<size_t>(piece % kLibraryPieces); }
  char* At(uint64_t piece) const { return bytes_.get() + 2 * Index(piece) * kLibraryPieceBytes; }
  char* ResultAt(uint64_t piece) const { return At(piece) + kLibraryPieceBytes; }
  // With the mutex: whether a call went well.
  bool Check(int code) {
    if (code == MPI_SUCCESS) return true;
    shared_.status.Update(ToStatus(
        code, absl::StrCat("an all-reduce of processes ", absl::StrJoin(key_.processes, ", "))));
    shared_.failed.store(true, std::memory_order_release);
    return false;
  }

  Shared& shared_;
  const LibraryGroupKey key_;
  MPI_Comm comm_;
  std::shared_ptr<char[]> bytes_;  // made with the first piece: not all groups have any
  std::array<MPI_Request, kLibraryPieces> requests_;
  uint64_t started_ = 0;
  uint64_t released_ = 0;
  bool is_here_ = false;  // what the oldest has become
};

MpiAllReduces::MpiAllReduces(MpiWorld& world)
    : shared_(std::make_unique<Shared>(world.communicator())) {}

MpiAllReduces::~MpiAllReduces() = default;

absl::Status MpiAllReduces::Open(absl::Span<const LibraryGroupKey> groups) {
  std::lock_guard<std::mutex> lock(shared_->communicator.mutex);
  MPI_Group all = MPI_GROUP_NULL;
  MGC_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_group(MPI_COMM_WORLD, &all), "asking for the world's processes"));
  absl::Status status;
  for (size_t g = 0; g < groups.size() && status.ok(); ++g) {
    const absl::StatusOr<MPI_Comm> comm = MakeCommunicator(all, groups[g]);
    status = comm.status();
    if (comm.ok()) groups_.push_back(std::make_unique<Group>(*shared_, groups[g], *comm));
  }
  MPI_Group_free(&all);
  return status;
}

LibraryGroup& MpiAllReduces::group(size_t place) { return *groups_[place]; }

absl::Status MpiAllReduces::Poll() {
  if (!shared_->failed.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(shared_->communicator.mutex);
  return shared_->status;
}

}  // namespace mgc
