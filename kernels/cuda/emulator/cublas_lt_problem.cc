#include "kernels/cuda/emulator/cublas_lt_problem.h"

#include <cstring>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc::cuda::emulator::lt {
namespace {

constexpr uint32_t kMostAlignment = 256;
constexpr uintptr_t kWorkspaceAlignment = 256;

int64_t ElementBytes(int32_t type) { return type == CUDA_R_32F ? 4 : 2; }
bool IsType(int32_t type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

double Load(const void* at, int64_t i, int32_t type) {
  if (type == CUDA_R_32F) return static_cast<const float*>(at)[i];
  if (type == CUDA_R_16F) return ToFloat(static_cast<const Float16*>(at)[i]);
  return ToFloat(static_cast<const Bfloat16*>(at)[i]);
}
void Store(double value, int64_t i, int32_t type, void* at) {
  const float rounded = static_cast<float>(value);
  if (type == CUDA_R_32F) static_cast<float*>(at)[i] = rounded;
  if (type == CUDA_R_16F) static_cast<Float16*>(at)[i] = ToFloat16(rounded);
  if (type == CUDA_R_16BF) static_cast<Bfloat16*>(at)[i] = ToBfloat16(rounded);
}

// Rounded to the 10 bits of fraction that TF32 has, ties away from zero.
double ToTf32(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  bits = (bits + 0x1000u) & ~0x1fffu;
  float rounded;
  std::memcpy(&rounded, &bits, sizeof rounded);
  return rounded;
}

const char* WrongLayout(const Layout& l) {
  if (!IsType(l.type)) return "a layout of an element type that no product has";
  if (l.rows <= 0 || l.cols <= 0) return "a layout without elements";
  if (l.ld < l.rows) return "a leading dimension below the number of rows";
  if (l.batch < 1) return "a batch of nothing";
  return nullptr;
}

bool IsSame(const Layout& x, const Layout& y) { return std::memcmp(&x, &y, sizeof(x)) == 0; }

const char* WrongTypes(const Problem& p) {
  const bool is_narrow = p.a.type != CUDA_R_32F;
  if (p.a.type != p.b.type) return "operands of two types";
  if (p.d.type != CUDA_R_32F && p.d.type != p.a.type) return "a result of another narrow type";
  if (is_narrow && p.desc.compute != CUBLAS_COMPUTE_32F)
    return "narrow operands to be rounded to TF32";
  if (p.desc.scale != CUDA_R_32F) return "factors that are not f32";
  return nullptr;
}

// FNV-1a over what an algorithm is chosen for; pointers apart.
uint64_t FingerprintOf(const Problem& p) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
  };
  for (const Layout* l : {&p.a, &p.b, &p.d}) {
    for (int64_t value : {int64_t{l->type}, int64_t{l->batch}, l->rows, l->cols, l->ld}) add(value);
    add(l->batch > 1 ? l->batch_stride : 0);
  }
  for (int32_t value : {p.desc.compute, p.desc.transposed[0], p.desc.transposed[1]}) add(value);
  add(p.desc.epilogue);
  return hash;
}

bool IsAligned(const void* at, uint32_t bytes) {
  return reinterpret_cast<uintptr_t>(at) % bytes == 0;
}

uint32_t AlignmentOf(const void* at) {
  uint32_t alignment = kMostAlignment;
  while (!IsAligned(at, alignment)) alignment /= 2;
  return alignment;
}

// Reductions of several parts of a sum need room for the parts.
uint64_t WorkspaceFor(const Problem& p, const Preference& preference) {
  constexpr uint64_t kParts = 2;
  const bool may_split = (preference.reduction & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  const uint64_t parts = kParts * sizeof(float) * static_cast<uint64_t>(p.m() * p.n());
  return may_split && p.k() > 4 * p.m() && parts <= preference.workspace ? parts : 0;
}

// From its first element to its last.
Range RangeOf(const Layout& l, const void* at, bool written) {
  const int64_t elements = l.batch_stride * (l.batch - 1) + l.ld * (l.cols - 1) + l.rows;
  return {at, static_cast<size_t>(elements * ElementBytes(l.type)), written};
}

}  // namespace

const char* WrongProblem(const Problem& p) {
  for (const Layout* l : {&p.a, &p.b, &p.c, &p.d}) {
    if (const char* wrong = WrongLayout(*l)) return wrong;
    if (l->batch != p.d.batch) return "batches of two sizes";
  }
  const int64_t elements = p.d.ld * (p.d.cols - 1) + p.d.rows;
  if (p.d.batch > 1 && p.d.batch_stride < p.d.rows) return "results of a batch that overlap";
  // Results of a batch lie one behind the other, or between the columns of each other.
  const bool between = p.d.batch_stride * (p.d.batch - 1) + p.d.rows <= p.d.ld;
  if (p.d.batch > 1 && p.d.batch_stride < elements && !between)
    return "results of a batch that overlap";
  if (!IsSame(p.c, p.d)) return "a C and a D of two layouts";
  const bool ta = p.desc.transposed[0] != 0, tb = p.desc.transposed[1] != 0;
  if ((ta ? p.a.cols : p.a.rows) != p.m()) return "an A that has not the rows of D";
  if ((tb ? p.b.rows : p.b.cols) != p.n()) return "a B that has not the columns of D";
  if ((tb ? p.b.cols : p.b.rows) != p.k()) return "an A and a B that are summed over two sizes";
  if (p.has_bias() && p.desc.bias == nullptr) return "a bias without a place";
  return WrongTypes(p);
}

const char* WrongAlignment(const Preference& preference) {
  for (uint32_t alignment : preference.alignment) {
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!is_power || alignment > kMostAlignment) return "an alignment that is no power of two";
  }
  return nullptr;
}

const char* BrokenPromise(const Problem& p, const Algorithm& algo, const Places& places) {
  const void* const matrices[] = {places.a, places.b, places.c, places.d};
  if (algo.problem != FingerprintOf(p)) return "an algorithm that was chosen for another problem";
  for (int t = 0; t < 4; ++t) {
    if (matrices[t] == nullptr) return "a matrix without a place";
    if (!IsAligned(matrices[t], algo.alignment[t]))
      return "a matrix that is not aligned as promised";
  }
  if (p.has_bias() && !IsAligned(p.desc.bias, algo.bias_alignment)) {
    return "a bias that is not aligned as promised";
  }
  if (places.workspace_bytes < algo.workspace) return "less workspace than the algorithm asks for";
  if (places.workspace_bytes == 0) return nullptr;
  const bool lies_well = reinterpret_cast<uintptr_t>(places.workspace) % kWorkspaceAlignment == 0;
  if (places.workspace == nullptr || !lies_well)
    return "workspace that is not aligned to 256 bytes";
  return nullptr;
}

// Some of what a version of the library has no algorithm for: narrow operands whose columns do not
// begin at multiples of 4 bytes.
bool IsServed(const Problem& p) {
  const auto fits = [](const Layout& l) { return l.ld * ElementBytes(l.type) % 4 == 0; };
  return fits(p.a) && fits(p.b);
}

Algorithm AlgorithmFor(const Problem& p, const Preference& preference) {
  Algorithm algo = {kAlgorithmMark, FingerprintOf(p), WorkspaceFor(p, preference), {}, 0};
  std::memcpy(algo.alignment, preference.alignment, sizeof(algo.alignment));
  algo.bias_alignment = AlignmentOf(p.desc.bias);
  return algo;
}

std::vector<Range> RangesOf(const Problem& p, const Algorithm& algo, const Places& places) {
  std::vector<Range> ranges = {RangeOf(p.a, places.a, false), RangeOf(p.b, places.b, false),
                               RangeOf(p.d, places.d, true)};
  if (places.beta != 0) ranges.push_back(RangeOf(p.c, places.c, false));
  if (algo.workspace > 0) ranges.push_back({places.workspace, algo.workspace, true});
  if (p.has_bias()) {
    const int64_t bytes = p.m() * ElementBytes(p.d.type);
    ranges.push_back({p.desc.bias, static_cast<size_t>(bytes), false});
  }
  return ranges;
}

void Compute(const Problem& p, const Places& places) {
  const auto place = [](const Layout& l, bool transposed, int64_t i, int64_t j) {
    return transposed ? j + i * l.ld : i + j * l.ld;
  };
  const bool is_tf32 = p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto operand = [&](const void* at, int64_t i, int32_t type) {
    const double value = Load(at, i, type);
    return is_tf32 ? ToTf32(value) : value;
  };
  for (int64_t batch = 0; batch < p.d.batch; ++batch) {
    for (int64_t j = 0; j < p.n(); ++j) {
      for (int64_t i = 0; i < p.m(); ++i) {
        double sum = 0;
        for (int64_t s = 0; s < p.k(); ++s) {
          const int64_t in_a = place(p.a, p.desc.transposed[0] != 0, i, s);
          const int64_t in_b = place(p.b, p.desc.transposed[1] != 0, s, j);
          sum += operand(places.a, batch * p.a.batch_stride + in_a, p.a.type) *
                 operand(places.b, batch * p.b.batch_stride + in_b, p.b.type);
        }
        const int64_t at = batch * p.d.batch_stride + i + j * p.d.ld;
        sum *= double{places.alpha};
        if (places.beta != 0) sum += places.beta * Load(places.c, at, p.d.type);
        if (p.has_bias()) sum += Load(p.desc.bias, i, p.d.type);
        Store(sum, at, p.d.type, places.d);
      }
    }
  }
}

}  // namespace mgc::cuda::emulator::lt
