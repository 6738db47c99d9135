// Megatron-LM's rule of which source gives a sample of blended data, and where it has come to
// before any sample, however far away.
//
// Of every source with weight w (weights divided by their sum) that has given n of the first i
// samples, the one with the largest w * max(i, 1) - n gives sample i, the first of several. In
// doubles, in which sources that are alike in real numbers are not: what is found here is what the
// choices lead to that are made one after the other.

#ifndef MGC_RUNTIME_DATA_BLEND_BLEND_RULE_H_
#define MGC_RUNTIME_DATA_BLEND_BLEND_RULE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mgc {

// What the sources have given before a sample.
struct BlendState {
  int64_t sample = 0;
  std::vector<int64_t> given;
};

// Immutable.
class BlendRule {
 public:
  // At least one weight; all above 0 and finite, and their sum finite.
  explicit BlendRule(std::vector<double> weights);

  const std::vector<double>& weights() const { return weights_; }  // with sum 1
  BlendState First() const;

  // The source of the state's sample.
  size_t Next(const BlendState& state) const;
  void Advance(BlendState* state) const {
    ++state->given[Next(*state)];
    ++state->sample;
  }

  // The state before `sample`, which is not before that of `from`, a state that Advance has led to
  // from First. Takes no more choices than lie between both, and not many more than 1.5 times
  // sources / least weight where it finds a proof that where they began does not matter, as it has
  // for all weights that were tried.
  BlendState Before(int64_t sample, const BlendState& from) const;

 private:
  // Jumps to `sample` from a state near what leads there; whether that is proved.
  bool Jump(int64_t sample, int64_t choices, BlendState* state) const;

  std::vector<double> weights_;
  double least_weight_ = 1;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_BLEND_BLEND_RULE_H_
