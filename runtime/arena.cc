#include "runtime/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "runtime/metrics.h"

namespace mgc {

absl::StatusOr<Arena> Arena::Create(int64_t bytes) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system has no ", FormatBytes(bytes), " for a rank"));
  }
  madvise(data, size, MADV_HUGEPAGE);  // only faster: its failure does not matter
  return Arena(static_cast<char*>(data), static_cast<int64_t>(size));
}

Arena::Arena(Arena&& other) noexcept : data_(nullptr), size_(0) { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
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

absl::Status CheckMachineMemory(int64_t bytes) {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0 || bytes / page <= pages) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("all ranks together need ", FormatBytes(bytes),
                                                   ", this machine has ",
                                                   FormatBytes(pages * page)));
}

}  // namespace mgc
