// Faults that are put in on purpose, to see that the emulator finds each.

#ifndef MGC_KERNELS_CUDA_EMULATOR_SEEDED_FAULT_H_
#define MGC_KERNELS_CUDA_EMULATOR_SEEDED_FAULT_H_

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/runtime.h"

namespace mgc::cuda::emulator {

// What a run gave, and what it should have.
struct Outcome {
  std::vector<float> got, wanted;
};

struct SeededFault {
  std::string name;     // of the test
  std::string message;  // part of what the emulator says; empty: the results are wrong
  // Runs with the fault or without it.
  std::function<void(bool faulty, Outcome* outcome)> run;
  bool addresses = false;  // the address sanitizer, where it is, ends the program first
  // Instead of `message` where accesses are watched (access.h), if any.
  std::string watched{};
};

std::ostream& operator<<(std::ostream& out, const SeededFault& fault);

// Device memory of floats, freed with this.
class Floats {
 public:
  explicit Floats(size_t count);
  explicit Floats(const std::vector<float>& values);
  ~Floats() { cudaFree(at_); }
  Floats(const Floats&) = delete;

  float* at() const { return at_; }
  std::vector<float> Get() const;

 private:
  float* at_ = nullptr;
  const size_t count_;
};

// 0, 1, 2...
std::vector<float> Counted(size_t count);

// Fails unless the run is well without the fault for all seeds, leaves nothing behind, and with it
// is caught by at least one of as many seeds as tests of kernels use.
void ExpectFound(const SeededFault& fault);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_SEEDED_FAULT_H_
