// Prints the ops of the table, one a line, in order. Fails if one lacks a kernel that it should
// have.
#include <algorithm>
#include <iostream>
#include <vector>

#include "graph/ir/op.h"
#include "kernels/cpu/cpu_kernels.h"

int main() {
  const std::vector<mgc::KernelEntry> kernels = mgc::CpuKernels();
  int missing = 0;
  for (const mgc::OpDef& op : mgc::AllOps()) {
    std::cout << op.name << "\n";
    const bool runs =
        std::any_of(kernels.begin(), kernels.end(),
                    [&op](const mgc::KernelEntry& kernel) { return kernel.op == op.name; });
    if (runs || op.collective) continue;
    std::cerr << op.name << " has no kernel\n";
    ++missing;
  }
  return missing == 0 ? 0 : 1;
}
