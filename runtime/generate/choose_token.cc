#include "runtime/generate/choose_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/random.h"

namespace mgc {
namespace {

// The tokens that may follow, the most probable first.
std::vector<int64_t> MostProbable(absl::Span<const float> logits, int64_t top_k) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), int64_t{0});
  const auto before = [&](int64_t a, int64_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const int64_t size = static_cast<int64_t>(tokens.size());
  const int64_t kept = top_k == 0 ? size : std::min(top_k, size);
  std::partial_sort(tokens.begin(), tokens.begin() + kept, tokens.end(), before);
  tokens.resize(static_cast<size_t>(kept));
  return tokens;
}

// Of each token exp((logit - the largest) / temperature).
std::vector<double> Weights(absl::Span<const float> logits, const std::vector<int64_t>& tokens,
                            double temperature) {
  std::vector<double> weights;
  const double most = logits[static_cast<size_t>(tokens[0])];
  for (const int64_t token : tokens) {
    weights.push_back(std::exp((logits[static_cast<size_t>(token)] - most) / temperature));
  }
  return weights;
}

// How many of the first weights it takes for their sum to be `top_p` of all.
size_t NumTaken(const std::vector<double>& weights, double top_p) {
  if (top_p >= 1) return weights.size();
  const double enough = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= enough) return i + 1;
  }
  return weights.size();
}

}  // namespace

Diagnostics CheckSampling(const SamplingOptions& options) {
  Diagnostics violations;
  const auto require = [&](bool holds, const auto&... text) {
    if (!holds) violations.Add("", "", absl::StrCat(text...));
  };
  require(std::isfinite(options.temperature) && options.temperature >= 0,
          "the temperature is a number from 0 on, not ", options.temperature);
  require(options.top_k >= 0, "top-k is 0 or more, not ", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "top-p is above 0 and at most 1, not ",
          options.top_p);
  return violations;
}

int64_t ChooseToken(absl::Span<const float> logits, const SamplingOptions& options,
                    int64_t position) {
  const auto is_number = [](float logit) { return !std::isnan(logit); };
  if (logits.empty() || !std::all_of(logits.begin(), logits.end(), is_number)) return -1;
  if (options.temperature == 0) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  const std::vector<int64_t> tokens = MostProbable(logits, options.top_k);
  std::vector<double> weights = Weights(logits, tokens, options.temperature);
  weights.resize(NumTaken(weights, options.top_p));
  const uint64_t stream = StreamOf("token");
  double left = RandomUniform(options.seed, stream, static_cast<uint64_t>(position)) *
                std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return tokens[i];
  }
  return tokens[weights.size() - 1];
}

}  // namespace mgc
