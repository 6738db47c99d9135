// A case of the op table as the kernels of the CPU are given it.

#ifndef MGC_KERNELS_TESTING_KERNEL_CASE_H_
#define MGC_KERNELS_TESTING_KERNEL_CASE_H_

#include <cstdint>
#include <map>
#include <string>

#include "graph/eval/op_case.h"
#include "kernels/kernel.h"

namespace mgc {

// Where the tile lies.
struct Place {
  bool shifted = false;  // in the second half of every factor whose place matters
  int64_t first_sample = 0;
  int padded = -1;     // the factor of which the tile has more room than it holds
  bool empty = false;  // and it holds none of it
};

KernelSpec SpecOf(const BoundCase& c, const Place& place);

const std::map<std::string, KernelFactory>& CpuFactories();  // by op

// Numbers of threads for which a kernel is asked how much scratch it uses.
inline constexpr int kScratchWidths[] = {1, 2, 3, 16, 257};

}  // namespace mgc

#endif  // MGC_KERNELS_TESTING_KERNEL_CASE_H_
