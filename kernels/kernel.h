// Fast meanings of ops on one device: what a kernel is given, and how the executor finds it.
//
// A kernel works on the tiles of one rank: dense, row-major, at addresses the plan fixed. It makes
// no allocation and decides nothing; what it needs of its place in the whole tensor (a vocabulary's
// start, dropout's logical index) comes as one DimPiece per factor of the op's rule. Scratch is a
// workspace that holds, for each thread, what its op registered (OpDef::workspace); a kernel that
// asks for more is refused at load. It splits its output over `parallel`, never a sum, so that no
// number of threads changes a bit.

#ifndef MGC_KERNELS_KERNEL_H_
#define MGC_KERNELS_KERNEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/op.h"
#include "graph/types/attrs.h"
#include "graph/types/factor_rule.h"
#include "graph/types/machine.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"
#include "kernels/parallel.h"

namespace mgc {

// What a collective that is a rank's own affair makes of its operand: `rows` rows of `to_stride`
// bytes one after the other, of which the first `valid` are the operand's, `from_begin` behind its
// row's begin, and the others zeros. (runtime/load/local_move.h)
struct LocalMove {
  int64_t rows = 0;
  int64_t from_begin = 0;
  int64_t from_stride = 0;
  int64_t valid = 0;
  int64_t to_stride = 0;
};

// What is known of one use of an op when a plan is loaded. Of `shard_slice` and `lift` the op, the
// types and the move, and nothing else.
struct KernelSpec {
  const OpDef* op = nullptr;
  Attrs attrs;                          // the layer's number filled in
  std::vector<TensorType> input_types;  // logical
  std::vector<TensorType> output_types;
  std::vector<std::vector<int64_t>> input_shapes;  // of the tiles
  std::vector<std::vector<int64_t>> output_shapes;
  FactorRule rule;
  std::vector<DimPiece> pieces;  // per factor, on this rank; the batch's begin without first_sample
  uint64_t seed = 0;
  LocalMove move;
};

// What changes from run to run.
struct KernelRun {
  absl::Span<void* const> inputs;
  absl::Span<void* const> outputs;
  void* workspace = nullptr;
  int64_t first_sample = 0;  // global index of the micro-batch's first sample
  // Of a backend whose kernels run later, and again without being given anything anew: the queue
  // that the kernel is issued to (a CUDA stream), and where the device has the first sample of the
  // step, `sample_in_step` before `first_sample`.
  void* queue = nullptr;
  const int64_t* step_sample = nullptr;
  int64_t sample_in_step = 0;
};

// One loaded kernel: everything that can be prepared has been. Run may be called from any thread,
// by several at once with workspaces of their own.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Bytes of scratch that Run uses when `parallel` is `width` wide; at most `width` times the
  // op's bound.
  virtual int64_t workspace_bytes(int /*width*/) const { return 0; }
  // OK, or what kept it from finishing; its results are then of no use. Allocates nothing unless it
  // fails.
  virtual absl::Status Run(const KernelRun& run, Parallel& parallel) const = 0;
};

// Makes the kernel of one use. Unimplemented when the backend has none for these types.
using KernelFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec&);

struct KernelEntry {
  const char* op;
  KernelFactory make;
};

// The kernels of a backend.
struct KernelList {
  KernelList() = default;
  KernelList(absl::Span<const KernelEntry> all, KernelHost on = KernelHost::kCpu)  // NOLINT
      : entries(all), host(on) {}
  KernelList(const std::vector<KernelEntry>& all) : entries(all) {}  // NOLINT: a list as it is

  absl::Span<const KernelEntry> entries;
  KernelHost host = KernelHost::kCpu;
};

}  // namespace mgc

#endif  // MGC_KERNELS_KERNEL_H_
