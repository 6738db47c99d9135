// The collectives that are a rank's own affair.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/adapt.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kHandOver = 1 << 16;  // bytes worth handing to another thread

KernelOr MakeLocalMove(const KernelSpec& spec) {
  return MakeKernel(spec, [m = spec.move](const KernelRun& run, Parallel& parallel) {
    const char* const from = In<char>(run, 0) + m.from_begin;
    char* const to = Out<char>(run, 0);
    parallel.For(m.rows * m.to_stride, kHandOver, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        const int64_t row = at / m.to_stride;
        const int64_t in_row = at % m.to_stride;
        const int64_t count = std::min(end - at, m.to_stride - in_row);
        const int64_t valid = std::clamp<int64_t>(m.valid - in_row, 0, count);
        if (valid > 0) {
          std::memcpy(to + at, from + row * m.from_stride + in_row, static_cast<size_t>(valid));
        }
        std::memset(to + at + valid, 0, static_cast<size_t>(count - valid));
        at += count;
      }
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> LocalMoveKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"lift", MakeLocalMove},
      {"shard_slice", MakeLocalMove},
  };
  return kEntries;
}

}  // namespace mgc::cpu
