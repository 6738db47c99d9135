#include "kernels/cuda/optimizer/optimizer.h"

#include <cstddef>

#include "kernels/cuda/device/each.h"
#include "kernels/cuda/device/map.h"

namespace mgc::cuda {
namespace {

// A step: how many arrays it has, what its loop takes of the numbers (made once for a block), and
// one element's results y of its operands x.

// Adam and AdamW.
template <bool kDecoupled>
struct AdamStep {
  static constexpr int kOperands = 4, kResults = 3;

  struct Factors {
    float beta1, one_minus_beta1, beta2, one_minus_beta2, eps, clip;
    float rate;        // lr / correction1
    float root_scale;  // 1 / sqrt(correction2)
    float decay;
    float decay_rate;  // lr · decay
  };

  __device__ static void Make(const double* const* numbers, bool decays, Factors* f) {
    enum { kRate, kDecay, kBeta1, kBeta2, kEps, kCorrection1, kCorrection2, kClip };
    const double lr = *numbers[kRate], decay = decays ? *numbers[kDecay] : 0;
    const double beta1 = *numbers[kBeta1], beta2 = *numbers[kBeta2];
    f->beta1 = static_cast<float>(beta1);
    f->one_minus_beta1 = static_cast<float>(1 - beta1);
    f->beta2 = static_cast<float>(beta2);
    f->one_minus_beta2 = static_cast<float>(1 - beta2);
    f->eps = static_cast<float>(*numbers[kEps]);
    f->clip = static_cast<float>(*numbers[kClip]);
    f->rate = static_cast<float>(lr / *numbers[kCorrection1]);
    f->root_scale = static_cast<float>(1 / sqrt(*numbers[kCorrection2]));
    f->decay = static_cast<float>(decay);
    f->decay_rate = static_cast<float>(lr * decay);
  }

  __device__ static void Take(const Factors& f, const float* x, float* y) {
    const float p = x[0];
    const float scaled = x[1] * f.clip;
    const float g = kDecoupled ? scaled : fmaf(f.decay, p, scaled);
    const float m = fmaf(f.beta1, x[2], f.one_minus_beta1 * g);
    const float v = fmaf(f.beta2, x[3], f.one_minus_beta2 * (g * g));
    const float change = f.rate * m / fmaf(sqrtf(v), f.root_scale, f.eps);
    y[0] = p - (kDecoupled ? fmaf(f.decay_rate, p, change) : change);
    y[1] = m;
    y[2] = v;
  }
};

struct SgdStep {
  static constexpr int kOperands = 3, kResults = 2;

  struct Factors {
    float lr, decay, momentum, clip;
  };

  __device__ static void Make(const double* const* numbers, bool decays, Factors* f) {
    enum { kRate, kDecay, kMomentum, kClip };
    f->lr = static_cast<float>(*numbers[kRate]);
    f->decay = decays ? static_cast<float>(*numbers[kDecay]) : 0.0f;
    f->momentum = static_cast<float>(*numbers[kMomentum]);
    f->clip = static_cast<float>(*numbers[kClip]);
  }

  __device__ static void Take(const Factors& f, const float* x, float* y) {
    const float g = fmaf(f.decay, x[0], x[1] * f.clip);
    y[1] = fmaf(f.momentum, x[2], g);
    y[0] = x[0] - f.lr * y[1];
  }
};

struct LionStep {
  static constexpr int kOperands = 3, kResults = 2;

  struct Factors {
    float lr, decay_rate, beta1, one_minus_beta1, beta2, one_minus_beta2, clip;
  };

  __device__ static void Make(const double* const* numbers, bool decays, Factors* f) {
    enum { kRate, kDecay, kBeta1, kBeta2, kClip };
    const double lr = *numbers[kRate];
    f->lr = static_cast<float>(lr);
    f->decay_rate = decays ? static_cast<float>(lr * *numbers[kDecay]) : 0.0f;
    f->beta1 = static_cast<float>(*numbers[kBeta1]);
    f->one_minus_beta1 = static_cast<float>(1 - *numbers[kBeta1]);
    f->beta2 = static_cast<float>(*numbers[kBeta2]);
    f->one_minus_beta2 = static_cast<float>(1 - *numbers[kBeta2]);
    f->clip = static_cast<float>(*numbers[kClip]);
  }

  __device__ static void Take(const Factors& f, const float* x, float* y) {
    const float p = x[0], m = x[2];
    const float g = x[1] * f.clip;
    const float mean = fmaf(f.beta1, m, f.one_minus_beta1 * g);
    const float sign = mean > 0.0f ? 1.0f : (mean < 0.0f ? -1.0f : 0.0f);
    y[0] = p - fmaf(f.decay_rate, p, f.lr * sign);
    y[1] = fmaf(f.beta2, m, f.one_minus_beta2 * g);
  }
};

struct NesterovStep {
  static constexpr int kOperands = 2, kResults = 2;

  struct Factors {
    float momentum, one_minus_momentum, clip;
  };

  __device__ static void Make(const double* const* numbers, bool /*decays*/, Factors* f) {
    enum { kMomentum, kClip };
    f->momentum = static_cast<float>(*numbers[kMomentum]);
    f->one_minus_momentum = static_cast<float>(1 - *numbers[kMomentum]);
    f->clip = static_cast<float>(*numbers[kClip]);
  }

  __device__ static void Take(const Factors& f, const float* x, float* y) {
    const float g = x[0] * f.clip;
    y[1] = fmaf(f.momentum, x[1], f.one_minus_momentum * g);
    y[0] = fmaf(f.momentum, y[1], f.one_minus_momentum * g);
  }
};

struct DecayedStepStep {
  static constexpr int kOperands = 2, kResults = 1;

  struct Factors {
    float lr, decay_rate;
  };

  __device__ static void Make(const double* const* numbers, bool decays, Factors* f) {
    enum { kRate, kDecay };
    const double lr = *numbers[kRate];
    f->lr = static_cast<float>(lr);
    f->decay_rate = decays ? static_cast<float>(lr * *numbers[kDecay]) : 0.0f;
  }

  __device__ static void Take(const Factors& f, const float* x, float* y) {
    y[0] = x[0] - fmaf(f.decay_rate, x[0], f.lr * x[1]);
  }
};

// Steps of one optimizer with the same numbers, in one launch: a part has blocks of its own.
struct StepTable {
  static constexpr int kMost = 44;  // as many as arguments have room for

  struct Part {
    const float* operands[StepArrays::kMostOperands];
    float* results[StepArrays::kMostResults];
    int64_t n, vectors;
    bool decays;
  };

  Part parts[kMost];
  unsigned first_block[kMost + 1];
  const double* numbers[StepArrays::kMostNumbers];
  const double* apply;
  int kept[StepArrays::kMostResults];
  int count;
};
static_assert(sizeof(StepTable) <= 4096);  // what every driver takes

// Elements [at, at + kCount) of all arrays, read before any is written.
template <class Step, int kCount>
__device__ void TakeStep(const typename Step::Factors& factors, bool applies, const int* kept_of,
                         const StepTable::Part& part, int64_t at) {
  using Elements = Vector<float, kCount>;
  Elements in[Step::kOperands], out[Step::kResults];
#pragma unroll
  for (int i = 0; i < Step::kOperands; ++i) {
    in[i] = *reinterpret_cast<const Elements*>(part.operands[i] + at);
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    float x[Step::kOperands], y[Step::kResults];
#pragma unroll
    for (int i = 0; i < Step::kOperands; ++i) x[i] = in[i].at[k];
    Step::Take(factors, x, y);
#pragma unroll
    for (int r = 0; r < Step::kResults; ++r) {
      float kept = 0;
#pragma unroll
      for (int i = 0; i < Step::kOperands; ++i) kept = kept_of[r] == i ? x[i] : kept;
      out[r].at[k] = applies ? y[r] : kept;
    }
  }
#pragma unroll
  for (int r = 0; r < Step::kResults; ++r) {
    *reinterpret_cast<Elements*>(part.results[r] + at) = out[r];
  }
}

// Whole vectors, then single elements.
template <class Step>
__global__ void StepsKernel(StepTable table) {
  constexpr int kCount = kPerVector<float>;
  int p = 0;
  while (p + 1 < table.count && table.first_block[p + 1] <= blockIdx.x) ++p;
  const StepTable::Part& part = table.parts[p];
  __shared__ typename Step::Factors factors;
  if (threadIdx.x == 0) Step::Make(table.numbers, part.decays, &factors);
  __syncthreads();
  const bool applies = table.apply == nullptr || *table.apply != 0;
  const int64_t stride = int64_t{table.first_block[p + 1] - table.first_block[p]} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x - table.first_block[p]} * blockDim.x + threadIdx.x;
  for (int64_t v = first; v < part.vectors; v += stride) {
    TakeStep<Step, kCount>(factors, applies, table.kept, part, v * kCount);
  }
  for (int64_t i = part.vectors * kCount + first; i < part.n; i += stride) {
    TakeStep<Step, 1>(factors, applies, table.kept, part, i);
  }
}

template <class X, size_t n>
bool AreSame(const X (&a)[n], const X (&b)[n]) {
  for (size_t i = 0; i < n; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// Whether parts take their numbers from the same places.
bool ShareNumbers(const StepArrays& a, const StepArrays& b) {
  return a.apply == b.apply && AreSame(a.numbers, b.numbers) && AreSame(a.kept, b.kept);
}

void AddPart(const StepPart& from, StepTable* table) {
  StepTable::Part& part = table->parts[table->count];
  bool aligned = true;
  for (int i = 0; i < StepArrays::kMostOperands; ++i) {
    part.operands[i] = from.arrays.operands[i];
    aligned = aligned && IsAligned(part.operands[i], 16);
  }
  for (int r = 0; r < StepArrays::kMostResults; ++r) {
    part.results[r] = from.arrays.results[r];
    aligned = aligned && IsAligned(part.results[r], 16);
  }
  part.n = from.n;
  part.vectors = aligned ? from.n / kPerVector<float> : 0;
  part.decays = from.decays;
  const LaunchShape own = ShapeFor(aligned ? part.vectors + 1 : part.n);
  table->first_block[table->count + 1] = table->first_block[table->count] + own.grid_x;
  ++table->count;
}

// As many from the first one on as one launch takes.
StepTable TableOf(const StepPart* parts, int count) {
  StepTable table = {};
  const StepArrays& first = parts[0].arrays;
  for (int i = 0; i < StepArrays::kMostNumbers; ++i) table.numbers[i] = first.numbers[i];
  for (int r = 0; r < StepArrays::kMostResults; ++r) table.kept[r] = first.kept[r];
  table.apply = first.apply;
  while (table.count < count && table.count < StepTable::kMost &&
         ShareNumbers(parts[table.count].arrays, first)) {
    AddPart(parts[table.count], &table);
  }
  return table;
}

template <class Step>
int Issue(Stream stream, const StepPart* parts, int count) {
  for (int done = 0; done < count;) {
    const StepTable table = TableOf(parts + done, count - done);
    LaunchShape shape = ShapeFor(1);
    shape.grid_x = table.first_block[table.count];
    const int error = Launch(StepsKernel<Step>, shape, stream, table);
    if (error != 0) return error;
    done += table.count;
  }
  return 0;
}

struct ScaleOf {
  float factor;

  __device__ float operator()(float x) const { return x * factor; }
};

template <class T>
struct IsFiniteOf {
  const T* x;
  T* flag;

  // Infinities less themselves are no numbers.
  __device__ void operator()(int64_t i) const {
    flag[i] = x[i] - x[i] == T{} ? static_cast<T>(1) : T{};
  }
};

struct InverseNormOf {
  double eps;
  const double* squares;
  double* inverse;

  __device__ void operator()(int64_t /*i*/) const { *inverse = 1 / (sqrt(*squares) + eps); }
};

struct BiasCorrectionOf {
  const double* beta;
  const double* steps;
  double* correction;

  __device__ void operator()(int64_t /*i*/) const { *correction = 1 - pow(*beta, *steps + 1); }
};

struct NextLossScaleOf {
  LossScaleNumbers n;

  __device__ void operator()(int64_t /*i*/) const {
    enum { kScale, kGrowth, kLeft, kFinite, kMinScale, kWindow, kHysteresis };
    double scale = *n.numbers[kScale], growth = *n.numbers[kGrowth], left = *n.numbers[kLeft];
    if (*n.numbers[kFinite] == 0) {
      growth = 0;
      left -= 1;
      if (left <= 0) scale = fmax(scale / 2, *n.numbers[kMinScale]);
    } else {
      growth += 1;
      if (growth == *n.numbers[kWindow]) {
        scale *= 2;
        growth = 0;
        left = *n.numbers[kHysteresis];
      }
    }
    *n.results[kScale] = scale;
    *n.results[kGrowth] = growth;
    *n.results[kLeft] = left;
  }
};

}  // namespace

int Adamw(Stream stream, const StepPart* parts, int count) {
  return Issue<AdamStep<true>>(stream, parts, count);
}
int Adam(Stream stream, const StepPart* parts, int count) {
  return Issue<AdamStep<false>>(stream, parts, count);
}
int Sgd(Stream stream, const StepPart* parts, int count) {
  return Issue<SgdStep>(stream, parts, count);
}
int Lion(Stream stream, const StepPart* parts, int count) {
  return Issue<LionStep>(stream, parts, count);
}
int Nesterov(Stream stream, const StepPart* parts, int count) {
  return Issue<NesterovStep>(stream, parts, count);
}
int DecayedStep(Stream stream, const StepPart* parts, int count) {
  return Issue<DecayedStepStep>(stream, parts, count);
}

int Scale(Stream stream, int64_t n, float factor, const float* x, float* y) {
  return Map(stream, n, ScaleOf{factor}, y, x);
}

template <class T>
int IsFinite(Stream stream, int64_t n, const T* x, T* flag) {
  return Each(stream, n, IsFiniteOf<T>{x, flag});
}
template int IsFinite<float>(Stream, int64_t, const float*, float*);
template int IsFinite<double>(Stream, int64_t, const double*, double*);

int InverseNorm(Stream stream, double eps, const double* squares, double* inverse) {
  return Each(stream, 1, InverseNormOf{eps, squares, inverse});
}
int BiasCorrection(Stream stream, const double* beta, const double* steps, double* correction) {
  return Each(stream, 1, BiasCorrectionOf{beta, steps, correction});
}
int NextLossScale(Stream stream, const LossScaleNumbers& numbers) {
  return Each(stream, 1, NextLossScaleOf{numbers});
}

}  // namespace mgc::cuda
