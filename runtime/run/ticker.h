// Something done at a fixed interval, on a thread of its own.

#ifndef MGC_RUNTIME_RUN_TICKER_H_
#define MGC_RUNTIME_RUN_TICKER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace mgc {

class Ticker {
 public:
  // Calls `tick` every `period` until the ticker is destroyed. Where the system gives no thread, it
  // is never called.
  Ticker(std::chrono::microseconds period, std::function<void()> tick);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run();

  const std::chrono::microseconds period_;
  const std::function<void()> tick_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TICKER_H_
