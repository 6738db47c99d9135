#include "graph/eval/models/scalar.h"

#include <algorithm>
#include <iterator>

#include "graph/base/random.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;
constexpr double kRootHalf = 0.70710678118654752440;    // sqrt(1 / 2)
constexpr double kNormalPeak = 0.39894228040143267794;  // 1 / sqrt(2 pi)

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// GELU in its tanh form (Hendrycks & Gimpel, arXiv 1606.08415, section 2).
double Gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}

double GeluGrad(double x) {
  const double t = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  const double inner = kGeluScale * (1.0 + 3.0 * kGeluCubic * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner;
}

// GELU itself: x times the normal distribution's share below x.
double NormalShare(double x) { return 0.5 * std::erfc(-x * kRootHalf); }

double GeluErfGrad(double x) { return NormalShare(x) + x * std::exp(-0.5 * x * x) * kNormalPeak; }

double TanhGrad(double x) {
  const double t = std::tanh(x);
  return 1.0 - t * t;
}

// log(1 + exp(x)), which never overflows.
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double SiluGrad(double x) {
  const double s = Sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

double Sign(double x) { return static_cast<double>((x > 0) - (x < 0)); }

using Args = absl::Span<const double>;

constexpr ScalarFunction kFunctions[] = {
    {"gelu", 1, true, [](Args a) { return Gelu(a[0]); }, {"gelu_grad", ""}, {0, 0}},
    {"gelu_grad", 1, false, [](Args a) { return GeluGrad(a[0]); }, {"", ""}, {0, 0}},
    {"gelu_erf",
     1,
     true,
     [](Args a) { return a[0] * NormalShare(a[0]); },
     {"gelu_erf_grad", ""},
     {0, 0}},
    {"gelu_erf_grad", 1, false, [](Args a) { return GeluErfGrad(a[0]); }, {"", ""}, {0, 0}},
    {"silu", 1, true, [](Args a) { return a[0] * Sigmoid(a[0]); }, {"silu_grad", ""}, {0, 0}},
    {"silu_grad", 1, false, [](Args a) { return SiluGrad(a[0]); }, {"", ""}, {0, 0}},
    {"softplus", 1, false, [](Args a) { return Softplus(a[0]); }, {"softplus_grad", ""}, {0, 0}},
    {"softplus_grad", 1, false, [](Args a) { return Sigmoid(a[0]); }, {"", ""}, {0, 0}},
    {"sqrt", 1, true, [](Args a) { return std::sqrt(a[0]); }, {"", ""}, {0.5, -1}},
    {"rsqrt", 1, false, [](Args a) { return 1.0 / std::sqrt(a[0]); }, {"", ""}, {-0.5, 3}},
    {"tanh", 1, true, [](Args a) { return std::tanh(a[0]); }, {"tanh_grad", ""}, {0, 0}},
    {"tanh_grad", 1, false, [](Args a) { return TanhGrad(a[0]); }, {"", ""}, {0, 0}},
    {"is_finite",
     1,
     false,
     [](Args a) { return std::isfinite(a[0]) ? 1.0 : 0.0; },
     {"", ""},
     {0, 0}},
    {"at_most", 2, false, [](Args a) { return a[0] <= a[1] ? 1.0 : 0.0; }, {"", ""}, {0, 0}},
    {"equal", 2, false, [](Args a) { return a[0] == a[1] ? 1.0 : 0.0; }, {"", ""}, {0, 0}},
    {"power", 2, false, [](Args a) { return std::pow(a[0], a[1]); }, {"", ""}, {0, 0}},
    {"sign", 1, true, [](Args a) { return Sign(a[0]); }, {"", ""}, {0, 0}},
    {"min", 2, true, [](Args a) { return std::min(a[0], a[1]); }, {"", ""}, {0, 0}},
};

}  // namespace

absl::Span<const ScalarFunction> ScalarFunctions() { return kFunctions; }

const ScalarFunction& ScalarFunctionOf(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const ScalarFunction& f) { return f.name == name; });
  MGC_CHECK(found != std::end(kFunctions))
      << "no scalar function `" << name << "`: add its row to graph/eval/models/scalar.cc";
  return *found;
}

double DoubleModel::Random(uint64_t seed, uint64_t stream, uint64_t index, double keep) const {
  return KeepBit(seed, stream, index, 1.0 - keep) ? 1.0 / keep : 0.0;
}

}  // namespace mgc
