#include "runtime/run/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/units.h"

namespace mgc {

namespace {

constexpr int64_t kFetchedAtOnce = int64_t{64} << 20;  // bytes, a multiple of a huge page

// Makes the system give pages for a stretch that begins at a page. False when it has none.
bool Fetch(char* from, int64_t bytes) {
#if defined(MADV_POPULATE_WRITE)
  if (madvise(from, static_cast<size_t>(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;  // EINVAL: Linux before 5.14
#endif
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t at = 0; at < bytes; at += page) *static_cast<volatile char*>(from + at) = 0;
  return true;
}

absl::Status NoRoom(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the system has no ", BytesText(bytes), " for a rank"));
}

}  // namespace

absl::StatusOr<Arena> Arena::Create(int64_t bytes, Parallel& parallel) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return NoRoom(bytes);
  Arena arena(static_cast<char*>(data), static_cast<int64_t>(size), true);
  MGC_RETURN_IF_ERROR(arena.FetchAll(parallel));
  return arena;
}

absl::StatusOr<Arena> Arena::CreateIn(char* memory, int64_t bytes, Parallel& parallel) {
  Arena arena(memory, bytes, false);
  MGC_RETURN_IF_ERROR(arena.FetchAll(parallel));
  return arena;
}

absl::Status Arena::FetchAll(Parallel& parallel) const {
  if (size_ == 0) return absl::OkStatus();
  // Only faster: its failure does not matter.
  madvise(data_, static_cast<size_t>(size_), MADV_HUGEPAGE);
  std::atomic<bool> fetched{true};
  parallel.For(size_, kFetchedAtOnce, [&](int64_t begin, int64_t end) {
    if (!Fetch(data_ + begin, end - begin)) fetched = false;
  });
  return fetched ? absl::OkStatus() : NoRoom(size_);
}

Arena::Arena(Arena&& other) noexcept : data_(nullptr), size_(0), owns_(false) {
  *this = std::move(other);
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(owns_, other.owns_);
  return *this;
}

Arena::~Arena() {
  if (owns_) munmap(data_, static_cast<size_t>(size_));
}

void ZeroStretch(char* to, int64_t bytes) {
#if defined(__x86_64__)
  constexpr int64_t kLine = 64;
  const int64_t before = std::min(
      bytes, (kLine - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine)) % kLine);
  std::memset(to, 0, static_cast<size_t>(before));
  to += before;
  bytes -= before;
  const __m128i zero = _mm_setzero_si128();
  for (; bytes >= kLine; to += kLine, bytes -= kLine) {
    for (int64_t i = 0; i < kLine; i += int64_t{sizeof(zero)}) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), zero);
    }
  }
  _mm_sfence();  // so that other threads see the zeros once they are told
#endif
  std::memset(to, 0, static_cast<size_t>(bytes));
}

}  // namespace mgc
