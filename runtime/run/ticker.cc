#include "runtime/run/ticker.h"

#include <system_error>
#include <utility>

namespace mgc {

Ticker::Ticker(std::chrono::microseconds period, std::function<void()> tick)
    : period_(period), tick_(std::move(tick)) {
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // What ticks only speeds things up; workers look after them too.
  }
}

Ticker::~Ticker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Ticker::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_.wait_for(lock, period_, [this] { return stopping_; })) {
    lock.unlock();
    tick_();
    lock.lock();
  }
}

}  // namespace mgc
