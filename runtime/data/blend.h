// Which source a sample of blended data comes from.
//
// Megatron-LM's rule: of every source with weight w (weights divided by their sum) that has given n
// of the first i samples, the one with the largest w * max(i, 1) - n gives sample i, the first of
// several. Counts so stay as near to the weights as they can, everywhere in the sequence.

#ifndef MGC_RUNTIME_DATA_BLEND_H_
#define MGC_RUNTIME_DATA_BLEND_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace mgc {

struct Blended {
  size_t source;
  int64_t sample;  // of the source, which has given so many before
};

// Any number of threads. The rule says what follows, not what stands far away: the counts of every
// 4,096th sample are kept once they are known, so that a sample takes at most so many steps of the
// rule, and the first one that is asked for as many as lie before it.
class Blend {
 public:
  // At least one weight; all above 0 and finite, and their sum finite.
  explicit Blend(std::vector<double> weights);

  // sample >= 0.
  Blended At(int64_t sample) const;

 private:
  // What has been given before a sample.
  struct State {
    int64_t sample = 0;
    std::vector<int64_t> given;
  };

  // The source of the state's sample.
  size_t Next(const State& state) const;
  void Advance(State* state) const;

  std::vector<double> weights_;
  mutable std::mutex mutex_;
  mutable std::vector<State> kept_;  // of every sample that is a multiple of the distance, so far
  mutable State latest_;             // where the last question ended
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_BLEND_H_
