// A checked longjmp refuses to go to another stack.
#undef _FORTIFY_SOURCE

#include "kernels/cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace mgc::cuda::emulator {
namespace {

constexpr size_t kStackBytes = 256 << 10;

size_t GuardBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber(void (*enter)()) {
  const size_t all = kStackBytes + GuardBytes();
  void* const mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED || mprotect(mapped, GuardBytes(), PROT_NONE) != 0) {
    std::perror("no memory for the stack of an emulated thread");
    std::abort();
  }
  stack_ = static_cast<char*>(mapped) + GuardBytes();
  getcontext(&start_);
  start_.uc_stack.ss_sp = stack_;
  start_.uc_stack.ss_size = kStackBytes;
  start_.uc_link = nullptr;
  makecontext(&start_, enter, 0);
#ifdef MGC_THREAD_SANITIZER
  fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef MGC_THREAD_SANITIZER
  __tsan_destroy_fiber(fiber_);
#endif
  Unpoison(stack_, kStackBytes);
  munmap(stack_ - GuardBytes(), kStackBytes + GuardBytes());
}

#ifdef MGC_THREAD_SANITIZER
void Fiber::GoOn() {
  resumer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, 0);
  swapcontext(&back_, &start_);
}
void Fiber::GoBack() {
  __tsan_switch_to_fiber(resumer_, 0);
  swapcontext(&start_, &back_);
}
#else
void Fiber::GoOn() {
  if (_setjmp(back_) != 0) return;
  if (begun_) _longjmp(here_, 1);
  begun_ = true;
  setcontext(&start_);
}
void Fiber::GoBack() {
  if (_setjmp(here_) == 0) _longjmp(back_, 1);
}
#endif

void Fiber::Resume() {
  void* fake = nullptr;
  StartSwitch(&fake, stack_, kStackBytes);
  GoOn();
  FinishSwitch(fake, nullptr, nullptr);
}

void Fiber::Yield() {
  StartSwitch(&fake_here_, resumer_stack_, resumer_bytes_);
  GoBack();
  FinishSwitch(fake_here_, &resumer_stack_, &resumer_bytes_);
}

void Fiber::Begin() { FinishSwitch(nullptr, &resumer_stack_, &resumer_bytes_); }

}  // namespace mgc::cuda::emulator
