#include "graph/ops/rope_frequencies.h"

#include <algorithm>
#include <cmath>

namespace mgc {
namespace {

constexpr double kTwoPi = 6.283185307179586476925;

double StretchedFrequency(const Attrs& attrs, double frequency) {
  const double low = attrs.Real("low");
  const double high = attrs.Real("high");
  const double periods = attrs.Real("original") * frequency / kTwoPi;  // original / wavelength
  const double slowed = frequency / attrs.Real("factor");
  if (periods > high) return frequency;
  if (periods < low) return slowed;
  const double blend = (periods - low) / (high - low);
  return (1.0 - blend) * slowed + blend * frequency;
}

}  // namespace

int64_t RotatedDims(const Attrs& attrs, int64_t head_dim) {
  return attrs.Find("dims") == nullptr ? head_dim : std::min(attrs.Int("dims"), head_dim);
}

std::vector<double> RopeFrequencies(const Attrs& attrs, int64_t head_dim) {
  const double theta = attrs.Real("theta");
  const int64_t rotated = RotatedDims(attrs, head_dim);
  std::vector<double> frequencies;
  for (int64_t j = 0; j < rotated / 2; ++j) {
    const double exponent = 2.0 * static_cast<double>(j) / static_cast<double>(rotated);
    const double frequency = std::pow(theta, -exponent);
    frequencies.push_back(attrs.Find("factor") == nullptr ? frequency
                                                          : StretchedFrequency(attrs, frequency));
  }
  return frequencies;
}

}  // namespace mgc
