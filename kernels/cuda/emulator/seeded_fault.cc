#include "kernels/cuda/emulator/seeded_fault.h"

#include <cstdint>
#include <numeric>
#include <ostream>

#include "gtest/gtest.h"
#include "kernels/cuda/emulator/access.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/sanitizer.h"
#include "kernels/cuda/emulator/watch.h"

namespace mgc::cuda::emulator {
namespace {

constexpr uint64_t kSeeds = 3;       // of kernels' tests (kernels/cuda/cuda_conformance_test.cc)
constexpr uint64_t kMoreSeeds = 10;  // under which nothing is found where nothing is wrong

}  // namespace

std::ostream& operator<<(std::ostream& out, const SeededFault& fault) { return out << fault.name; }

Floats::Floats(size_t count) : count_(count) {
  void* at = nullptr;
  cudaMalloc(&at, count * sizeof(float));
  at_ = static_cast<float*>(at);
}

Floats::Floats(const std::vector<float>& values) : Floats(values.size()) {
  cudaMemcpy(at_, values.data(), count_ * sizeof(float), cudaMemcpyHostToDevice);
}

std::vector<float> Floats::Get() const {
  std::vector<float> values(count_);
  cudaMemcpy(values.data(), at_, count_ * sizeof(float), cudaMemcpyDeviceToHost);
  return values;
}

std::vector<float> Counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

void ExpectFound(const SeededFault& fault) {
  for (uint64_t seed = 0; seed < kMoreSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SetSeed(seed);
    Outcome outcome;
    fault.run(false, &outcome);
    EXPECT_EQ(TakeFault(), "");
    EXPECT_EQ(outcome.got, outcome.wanted);
    EXPECT_EQ(Leaks(), "");
  }
  if (fault.addresses && kAddressSanitizer) return;
  const bool watched = AccessWatch::enabled() && !fault.watched.empty();
  const std::string& message = watched ? fault.watched : fault.message;
  std::string said;
  bool found = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SetSeed(seed);
    Outcome outcome;
    fault.run(true, &outcome);
    const std::string text = TakeFault();
    if (message.empty()) {
      EXPECT_EQ(text, "") << "which tells more than that results are wrong";
      found = found || outcome.got != outcome.wanted;
    } else {
      found = found || text.find(message) != std::string::npos;
      said += text + "\n";
    }
  }
  EXPECT_TRUE(found) << "said instead of \"" << message << "\": " << said;
}

}  // namespace mgc::cuda::emulator
