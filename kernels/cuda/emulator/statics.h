// The `__shared__` variables of kernels: where they are, so that they can hold something undefined
// when a block begins.

#ifndef MGC_KERNELS_CUDA_EMULATOR_STATICS_H_
#define MGC_KERNELS_CUDA_EMULATOR_STATICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/memory.h"

namespace mgc::cuda::emulator {

// Read from the program's table of symbols: of functions in mgc::cuda the variables that are static
// and of one thread. Of a program that has no such table nothing is known.
class Statics {
 public:
  static const Statics& Get();

  // Of a kernel: what it declares, and what functions that are no kernels do (it may call them).
  // Functions with Kernel in their names are kernels. Null: of all.
  struct Variable {
    uintptr_t offset = 0;  // in the program's variables of a thread
    uintptr_t bytes = 0;
  };
  std::vector<Variable> Of(const void* kernel) const;
  // A short name, "MapKernel"; empty: unknown.
  std::string NameOf(const void* kernel) const;
  // A place in the code as addr2line takes it, "0x3456 (addr2line)".
  std::string PlaceOf(const void* place) const;

 private:
  Statics();
  void Read(const char* file, uintptr_t bytes);

  struct Local {
    std::string function;  // as linkers see it, without the leading _Z
    Variable variable;
  };
  uintptr_t program_ = 0;  // its place in memory
  std::vector<Local> locals_;
  std::map<uintptr_t, std::string> functions_;  // of mgc::cuda, by address
};

// The variables of this thread.
std::vector<Range> RangesOf(const std::vector<Statics::Variable>& variables);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_STATICS_H_
