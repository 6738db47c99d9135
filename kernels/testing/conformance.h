// Kernels of a backend against the meaning of their ops, over the cases of the op table: what the
// conformance tests of all backends share.

#ifndef MGC_KERNELS_TESTING_CONFORMANCE_H_
#define MGC_KERNELS_TESTING_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/eval/op_case.h"
#include "kernels/kernel.h"
#include "kernels/testing/kernel_case.h"

namespace mgc {

inline constexpr uint64_t kDrawSeed = 20240301;

// Operands with padding, index operands moved to where the tile lies.
std::vector<RealTensor> TilesOf(const BoundCase& c, const KernelSpec& spec, const Place& place);

// What the meaning makes of operands rounded to their types.
std::vector<RealTensor> Meaning(const KernelSpec& spec, const Place& place,
                                std::vector<RealTensor> operands);

// Operands, results and scratch as blocks of this process' memory, each between guards: a backend
// with memory of its own takes copies of all and gives them back.
struct GuardedBlocks {
  static constexpr int64_t kGuardBytes = 64;

  std::vector<std::vector<char>> blocks;  // guards included
  std::vector<int> inputs;                // the block of each operand
  std::vector<int> outputs;               // and of each result
  int workspace = 0;

  // Where a block's own bytes begin.
  void* At(int block) { return blocks[static_cast<size_t>(block)].data() + kGuardBytes; }
};

// Results as bytes, which begin as garbage between guards; some in the places of operands, as
// `in_place` says. `workspace_bytes`: as the kernel asks for.
std::vector<std::vector<char>> RunGuarded(const KernelSpec& spec,
                                          const std::vector<RealTensor>& operands,
                                          const std::vector<InPlace>& in_place,
                                          int64_t workspace_bytes,
                                          const std::function<void(GuardedBlocks*)>& run);

// Fails the test where results are not those of the meaning, within `tolerance` of the largest.
void ExpectMeaning(const KernelSpec& spec, const std::vector<RealTensor>& expected,
                   const std::vector<std::vector<char>>& actual, double tolerance);

// Each pair of result and operand that may share a place by itself, then as many as can at once.
std::vector<std::vector<InPlace>> PlacesOf(const OpDef& op);

// Whether a factor may be cut, and into unequal pieces: it has several elements and is merged with
// no other.
bool MayBePadded(const FactorRule& rule, int factor);

}  // namespace mgc

#endif  // MGC_KERNELS_TESTING_CONFORMANCE_H_
