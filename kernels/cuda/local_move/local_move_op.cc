// The collectives that are a rank's own affair.
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/local_move/local_move.h"

namespace mgc::cuda {
namespace {

// In units of a T; all of the move's numbers are multiples of its size.
template <class T>
int Move(Stream stream, const LocalMove& m, const KernelRun& run) {
  constexpr int64_t kBytes = sizeof(T);
  const RowMove rows = {m.rows, m.from_stride / kBytes, m.valid / kBytes, m.to_stride / kBytes};
  return MoveRows(stream, rows, In<T>(run, 0) + m.from_begin / kBytes, Out<T>(run, 0));
}

int IssueMove(Stream stream, const LocalMove& m, const KernelRun& run) {
  // Of more than one row the rows' places count.
  const int64_t strides = m.rows > 1 ? m.from_stride | m.to_stride : m.to_stride;
  const auto fits = [&](int64_t bytes) {
    return (strides | m.from_begin | m.valid) % bytes == 0 && IsAligned(In<char>(run, 0), bytes) &&
           IsAligned(Out<char>(run, 0), bytes);
  };
  if (fits(sizeof(Unit16))) return Move<Unit16>(stream, m, run);
  if (fits(sizeof(uint64_t))) return Move<uint64_t>(stream, m, run);
  if (fits(sizeof(uint32_t))) return Move<uint32_t>(stream, m, run);
  if (fits(sizeof(uint16_t))) return Move<uint16_t>(stream, m, run);
  return Move<uint8_t>(stream, m, run);
}

KernelOr MakeLocalMove(const KernelSpec& spec) {
  return MakeKernel(spec, [m = spec.move](const KernelRun& run, Stream stream) {
    return IssueMove(stream, m, run);
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

}  // namespace mgc::cuda
