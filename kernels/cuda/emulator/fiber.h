// A stack that runs until it yields, on the thread that resumes it.

#ifndef MGC_KERNELS_CUDA_EMULATOR_FIBER_H_
#define MGC_KERNELS_CUDA_EMULATOR_FIBER_H_

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

#include "kernels/cuda/emulator/sanitizer.h"

namespace mgc::cuda::emulator {

// Switches make no system call, but for the first Resume. Between a stack and what lies below it is
// a page that nobody may touch.
class Fiber {
 public:
  // `enter` runs at the first Resume and must not return.
  explicit Fiber(void (*enter)());
  ~Fiber();
  Fiber(const Fiber&) = delete;

  // Runs the fiber until it yields.
  void Resume();
  // On the fiber: goes back to where Resume was called.
  void Yield();
  // To be called first by `enter`.
  void Begin();

 private:
  void GoBack();
  void GoOn();

  char* stack_ = nullptr;
  bool begun_ = false;
  ucontext_t start_;
#ifdef MGC_THREAD_SANITIZER
  ucontext_t back_;
  void* fiber_ = nullptr;
  void* resumer_ = nullptr;
#else
  std::jmp_buf here_, back_;
#endif
  // What the address sanitizer wants to be handed.
  void* fake_here_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_bytes_ = 0;
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_FIBER_H_
