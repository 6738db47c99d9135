#include "kernels/cuda/emulator/fault.h"

#include <mutex>

#include "kernels/cuda/emulator/emulator.h"

namespace mgc::cuda::emulator {
namespace {

struct Faults {
  std::mutex mutex;
  std::string first;
  int sticky = 0;
};

Faults& All() {
  static Faults* const faults = new Faults;
  return *faults;
}

}  // namespace

void Fault(const std::string& what) { FaultOfExecution(0, what); }

void FaultOfExecution(int error, const std::string& what) {
  Faults& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.first.empty()) all.first = what;
  if (all.sticky == 0) all.sticky = error;
}

bool HasFault() {
  Faults& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return !all.first.empty();
}

int StickyError() {
  Faults& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.sticky;
}

std::string TakeFault() {
  Faults& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::string taken;
  taken.swap(all.first);
  all.sticky = 0;
  return taken;
}

}  // namespace mgc::cuda::emulator
