#include "kernels/cuda/emulator/cublas_lt.h"

#include <cstring>
#include <mutex>
#include <set>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fault.h"

struct cublasLtContext {
  int unused;
};

namespace mgc::cuda::emulator {
namespace {

// What the opaque structures hold. The mark tells initialized ones from garbage.
struct Layout {
  uint64_t mark;
  int32_t type;
  int32_t batch;
  int64_t rows, cols, ld, batch_stride;
};
struct Desc {
  uint64_t mark;
  int32_t compute, scale, transposed[2], epilogue;
  const void* bias;
};
struct Preference {
  uint64_t mark;
  uint64_t workspace;
  uint32_t reduction;
  uint32_t alignment[4];  // of a, b, c, d
};
struct Algorithm {
  uint64_t mark;
  uint64_t problem;
  uint64_t workspace;
  uint32_t alignment[4];
  uint32_t bias_alignment;
};
constexpr uint64_t kLayoutMark = 0x4c61796f7574206d, kDescMark = 0x44657363206d6b21,
                   kPreferenceMark = 0x507265666572656e, kAlgorithmMark = 0x416c676f72697468;
constexpr uint32_t kMostAlignment = 256;
constexpr uintptr_t kWorkspaceAlignment = 256;

cublasStatus_t Refuse(const char* why) {
  Fault(Text("cuBLASLt is given ", why));
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <class Content, class Opaque>
void Write(const Content& content, Opaque* opaque) {
  static_assert(sizeof(Content) <= sizeof(Opaque));
  std::memset(opaque, 0, sizeof(Opaque));
  std::memcpy(opaque, &content, sizeof(Content));
}
template <class Content, class Opaque>
bool Read(const Opaque* opaque, uint64_t mark, Content* content) {
  if (opaque == nullptr) return false;
  std::memcpy(content, opaque, sizeof(Content));
  return content->mark == mark;
}
// Sets a field to an attribute's value. False: not of its size.
template <class T>
bool Assign(const void* value, size_t bytes, T* field) {
  if (value == nullptr || bytes != sizeof(T)) return false;
  std::memcpy(field, value, sizeof(T));
  return true;
}

// The handles that live.
class Handles {
 public:
  cublasLtHandle_t Create() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return *live_.insert(new cublasLtContext{0}).first;
  }
  // Memory is kept, so that no later handle is mistaken for this one.
  bool Destroy(cublasLtHandle_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (live_.erase(handle) == 0) return false;
    destroyed_.insert(handle);
    return true;
  }
  bool Lives(cublasLtHandle_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return live_.count(handle) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<cublasLtHandle_t> live_, destroyed_;
};
Handles& AllHandles() {
  static Handles* const handles = new Handles;
  return *handles;
}

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

// A whole call: what its descriptors say.
struct Problem {
  Desc desc;
  Layout a, b, c, d;

  int64_t m() const { return d.rows; }
  int64_t n() const { return d.cols; }
  int64_t k() const { return desc.transposed[0] != 0 ? a.rows : a.cols; }
  bool has_bias() const { return desc.epilogue == CUBLASLT_EPILOGUE_BIAS; }
};

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

// Null where all descriptors are whole and fit each other.
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

bool ReadProblem(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, Problem* p) {
  return Read(desc, kDescMark, &p->desc) && Read(a, kLayoutMark, &p->a) &&
         Read(b, kLayoutMark, &p->b) && Read(c, kLayoutMark, &p->c) && Read(d, kLayoutMark, &p->d);
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

// Some of what a version of the library has no algorithm for: narrow operands whose columns do not
// begin at multiples of 4 bytes.
bool IsServed(const Problem& p) {
  const auto fits = [](const Layout& l) { return l.ld * ElementBytes(l.type) % 4 == 0; };
  return fits(p.a) && fits(p.b);
}

void Compute(const Problem& p, float alpha, const void* a, const void* b, float beta, const void* c,
             void* d) {
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
          sum += operand(a, batch * p.a.batch_stride + in_a, p.a.type) *
                 operand(b, batch * p.b.batch_stride + in_b, p.b.type);
        }
        const int64_t at = batch * p.d.batch_stride + i + j * p.d.ld;
        sum *= double{alpha};
        if (beta != 0) sum += beta * Load(c, at, p.d.type);
        if (p.has_bias()) sum += Load(p.desc.bias, i, p.d.type);
        Store(sum, at, p.d.type, d);
      }
    }
  }
}

bool IsAligned(const void* at, uint32_t bytes) {
  return reinterpret_cast<uintptr_t>(at) % bytes == 0;
}

// Null where a call keeps what its algorithm was promised.
const char* BrokenPromise(const Problem& p, const Algorithm& algo, const void* const places[4],
                          const void* workspace, size_t workspace_bytes) {
  if (algo.problem != FingerprintOf(p)) return "an algorithm that was chosen for another problem";
  for (int t = 0; t < 4; ++t) {
    if (places[t] == nullptr) return "a matrix without a place";
    if (!IsAligned(places[t], algo.alignment[t])) return "a matrix that is not aligned as promised";
  }
  if (p.has_bias() && !IsAligned(p.desc.bias, algo.bias_alignment)) {
    return "a bias that is not aligned as promised";
  }
  if (workspace_bytes < algo.workspace) return "less workspace than the algorithm asks for";
  if (workspace_bytes == 0) return nullptr;
  const bool lies_well = reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment == 0;
  if (workspace == nullptr || !lies_well) return "workspace that is not aligned to 256 bytes";
  return nullptr;
}

const char* CheckedAlignment(const Preference& preference) {
  for (uint32_t alignment : preference.alignment) {
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!is_power || alignment > kMostAlignment) return "an alignment that is no power of two";
  }
  return nullptr;
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

}  // namespace

}  // namespace mgc::cuda::emulator

using namespace mgc::cuda::emulator;  // NOLINT: of the functions that cuBLASLt has at global scope

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = AllHandles().Create();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (!AllHandles().Destroy(handle)) return Refuse("a handle that does not live");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type,
                                        uint64_t rows, uint64_t cols, int64_t ld) {
  const auto size = [](uint64_t value) { return static_cast<int64_t>(value); };
  Write(Layout{kLayoutMark, type, 1, size(rows), size(cols), ld, 0}, layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  Layout content;
  if (!Read(layout, kLayoutMark, &content)) return Refuse("a layout that is not initialized");
  const bool is_count = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
  const bool is_set =
      is_count ? Assign(value, bytes, &content.batch) : Assign(value, bytes, &content.batch_stride);
  if (!is_set) return Refuse("an attribute of another size");
  Write(content, layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t compute,
                                      cudaDataType scale) {
  Write(Desc{kDescMark, compute, scale, {0, 0}, CUBLASLT_EPILOGUE_DEFAULT, nullptr}, desc);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  Desc content;
  if (!Read(desc, kDescMark, &content)) return Refuse("a descriptor that is not initialized");
  bool is_set = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
      is_set = Assign(value, bytes, &content.transposed[attribute - CUBLASLT_MATMUL_DESC_TRANSA]);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      is_set = Assign(value, bytes, &content.epilogue);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      is_set = Assign(value, bytes, &content.bias);
      break;
  }
  if (!is_set) return Refuse("an attribute of another size");
  Write(content, desc);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  Write(Preference{kPreferenceMark, 0, 7, {256, 256, 256, 256}}, preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  Preference content;
  if (!Read(preference, kPreferenceMark, &content)) {
    return Refuse("a preference that is not initialized");
  }
  bool is_set = false;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    is_set = Assign(value, bytes, &content.workspace);
  } else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    is_set = Assign(value, bytes, &content.reduction);
  } else {
    const int matrix = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    is_set = Assign(value, bytes, &content.alignment[matrix]);
  }
  if (!is_set) return Refuse("an attribute of another size");
  Write(content, preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  Problem p;
  Preference wanted;
  if (!AllHandles().Lives(handle)) return Refuse("a handle that does not live");
  if (!ReadProblem(desc, a, b, c, d, &p) || !Read(preference, kPreferenceMark, &wanted)) {
    return Refuse("a descriptor that is not initialized");
  }
  if (const char* wrong = WrongProblem(p)) return Refuse(wrong);
  if (const char* wrong = CheckedAlignment(wanted)) return Refuse(wrong);
  if (requested < 1) return Refuse("no number of algorithms");
  *returned = 0;
  if (!IsServed(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *returned = 1;
  Algorithm algo = {kAlgorithmMark, FingerprintOf(p), WorkspaceFor(p, wanted), {}, 0};
  std::memcpy(algo.alignment, wanted.alignment, sizeof(algo.alignment));
  algo.bias_alignment = AlignmentOf(p.desc.bias);
  results[0] = {{}, algo.workspace, CUBLAS_STATUS_SUCCESS, 1.0f, {}};
  Write(algo, &results[0].algo);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  Problem p;
  Algorithm chosen;
  if (!AllHandles().Lives(handle)) return Refuse("a handle that does not live");
  if (!ReadProblem(desc, a_layout, b_layout, c_layout, d_layout, &p)) {
    return Refuse("a descriptor that is not initialized");
  }
  if (!Read(algo, kAlgorithmMark, &chosen)) return Refuse("an algorithm that was never chosen");
  if (const char* wrong = WrongProblem(p)) return Refuse(wrong);
  const void* const places[4] = {a, b, c, d};
  if (const char* wrong = BrokenPromise(p, chosen, places, workspace, workspace_bytes)) {
    return Refuse(wrong);
  }
  if (alpha == nullptr || beta == nullptr) return Refuse("a factor without a place");
  // Factors lie on the host and are read now.
  const float by_alpha = *static_cast<const float*>(alpha);
  const float by_beta = *static_cast<const float*>(beta);
  const mgc::cuda::LaunchShape one_thread = {1, 1, 1, 1, 0};
  const int error = Launch(one_thread, stream, [=] {
    if (chosen.workspace > 0) std::memset(workspace, 0xff, chosen.workspace);
    Compute(p, by_alpha, a, b, by_beta, c, d);
  });
  return error == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
