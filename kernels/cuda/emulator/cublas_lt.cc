#include "kernels/cuda/emulator/cublas_lt.h"

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/cublas_lt_problem.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"

struct cublasLtContext {
  int unused;
};

namespace mgc::cuda::emulator::lt {
namespace {

cublasStatus_t Refuse(const std::string& why) {
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
class Contexts {
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
Contexts& AllContexts() {
  static Contexts* const contexts = new Contexts;
  return *contexts;
}

bool ReadProblem(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, Problem* p) {
  return Read(desc, kDescMark, &p->desc) && Read(a, kLayoutMark, &p->a) &&
         Read(b, kLayoutMark, &p->b) && Read(c, kLayoutMark, &p->c) && Read(d, kLayoutMark, &p->d);
}

// Puts a call that is right into a stream.
cublasStatus_t Issue(const Problem& p, const Algorithm& algo, const Places& places,
                     cudaStream_t handle) {
  Call call("cublasLtMatmul");
  if (call.refused() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  Work work{"a product of cuBLASLt", nullptr, RangesOf(p, algo, places), false};
  for (const Range& range : work.ranges) {
    const Memory& memory = call.state().memory;
    const std::string wrong = memory.Check(range.written ? "writes" : "reads", range);
    if (!wrong.empty()) return Refuse("a matrix that " + wrong);
    if (memory.KindOf(range.at) != MemoryKind::kDevice) return Refuse("memory of the host");
  }
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  work.run = [=] {
    if (algo.workspace > 0) std::memset(places.workspace, 0xff, algo.workspace);
    Compute(p, places);
  };
  const cudaError_t error = call.Issue(stream, std::move(work));
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

// A function of C is one in all namespaces.
extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  Call call("cublasLtCreate", Call::Kind::kUnsafe);  // it allocates
  if (call.refused() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = AllContexts().Create();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (!AllContexts().Destroy(handle)) return Refuse("a handle that does not live");
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
  if (!AllContexts().Lives(handle)) return Refuse("a handle that does not live");
  if (!ReadProblem(desc, a, b, c, d, &p) || !Read(preference, kPreferenceMark, &wanted)) {
    return Refuse("a descriptor that is not initialized");
  }
  if (const char* wrong = WrongProblem(p)) return Refuse(wrong);
  if (const char* wrong = WrongAlignment(wanted)) return Refuse(wrong);
  if (requested < 1) return Refuse("no number of algorithms");
  *returned = 0;
  if (!IsServed(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *returned = 1;
  const Algorithm algo = AlgorithmFor(p, wanted);
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
  if (!AllContexts().Lives(handle)) return Refuse("a handle that does not live");
  if (!ReadProblem(desc, a_layout, b_layout, c_layout, d_layout, &p)) {
    return Refuse("a descriptor that is not initialized");
  }
  if (!Read(algo, kAlgorithmMark, &chosen)) return Refuse("an algorithm that was never chosen");
  if (const char* wrong = WrongProblem(p)) return Refuse(wrong);
  if (alpha == nullptr || beta == nullptr) return Refuse("a factor without a place");
  // Factors lie on the host and are read now.
  const Places places = {a,
                         b,
                         c,
                         d,
                         workspace,
                         workspace_bytes,
                         *static_cast<const float*>(alpha),
                         *static_cast<const float*>(beta)};
  if (const char* wrong = BrokenPromise(p, chosen, places)) return Refuse(wrong);
  return Issue(p, chosen, places, stream);
}
}  // extern "C"

}  // namespace mgc::cuda::emulator::lt
