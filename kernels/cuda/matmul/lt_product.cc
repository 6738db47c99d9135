#include "kernels/cuda/matmul/lt_product.h"

#include <algorithm>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/api.h"
#include "kernels/spec.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kLtAlignment = 256;    // of the library's workspace
constexpr int64_t kGivenAlignment = 64;  // of a kernel's workspace
constexpr int64_t kAlignmentRoom = kLtAlignment - kGivenAlignment;
constexpr float kOne = 1, kZero = 0;

int ErrorOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return cudaSuccess;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return cudaErrorMemoryAllocation;
    case CUBLAS_STATUS_INVALID_VALUE:
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return cudaErrorInvalidValue;
    default:
      return cudaErrorLaunchFailure;
  }
}

template <class... Statuses>
cublasStatus_t FirstOf(cublasStatus_t status, Statuses... more) {
  if constexpr (sizeof...(more) > 0) {
    return status != CUBLAS_STATUS_SUCCESS ? status : FirstOf(more...);
  }
  return status;
}

// The library's handles, one for each device that is asked for. They take milliseconds and device
// memory to make, serve all threads, and last as long as the process.
class LtHandles {
 public:
  cublasStatus_t Of(int device, cublasLtHandle_t* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    cublasLtHandle_t& kept = handles_[device];
    const cublasStatus_t status = kept == nullptr ? cublasLtCreate(&kept) : CUBLAS_STATUS_SUCCESS;
    *handle = kept;
    return status;
  }

 private:
  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
};

LtHandles& Handles() {
  static LtHandles* const handles = new LtHandles;
  return *handles;
}

cudaDataType TypeOf(DType dtype) {
  if (dtype == DType::kBF16) return CUDA_R_16BF;
  return dtype == DType::kF16 ? CUDA_R_16F : CUDA_R_32F;
}

cublasStatus_t LayOut(const LtMatrix& m, DType dtype, int64_t batch,
                      cublasLtMatrixLayoutOpaque_t* layout) {
  const auto count = static_cast<int32_t>(batch);
  const cublasStatus_t status = cublasLtMatrixLayoutInit(
      layout, TypeOf(dtype), static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.cols), m.ld);
  if (status != CUBLAS_STATUS_SUCCESS || batch == 1) return status;
  return FirstOf(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                       sizeof(count)),
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                       &m.batch_stride, sizeof(m.batch_stride)));
}

template <class T>
cublasStatus_t Set(cublasLtMatmulDescOpaque_t* desc, cublasLtMatmulDescAttributes_t attribute,
                   const T& value) {
  return cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value));
}
template <class T>
cublasStatus_t Set(cublasLtMatmulPreferenceOpaque_t* preference,
                   cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
}

cublasStatus_t Prefer(const LtProblem& p, uint64_t most_workspace,
                      cublasLtMatmulPreferenceOpaque_t* preference) {
  const cublasStatus_t status = cublasLtMatmulPreferenceInit(preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const uint32_t in_order = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  return FirstOf(Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace),
                 Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_order),
                 Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.a.alignment),
                 Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.b.alignment),
                 Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.d.alignment),
                 Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.d.alignment));
}

bool AreAligned(const LtProblem& p, const LtPlaces& places) {
  return IsAligned(places.a, p.a.alignment) && IsAligned(places.b, p.b.alignment) &&
         IsAligned(places.d, p.d.alignment) &&
         IsAligned(places.added, p.added == LtAdded::kBias ? kGivenAlignment : p.d.alignment);
}

// The library takes what it only reads by pointers that allow more.
cublasLtMatrixLayout_t Read(const cublasLtMatrixLayoutOpaque_t& layout) {
  return const_cast<cublasLtMatrixLayout_t>(&layout);
}

void* AlignedUp(void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return static_cast<char*>(p) + (kLtAlignment - address % kLtAlignment) % kLtAlignment;
}

}  // namespace

LtProduct::LtProduct(const LtProblem& problem, int64_t most_workspace)
    : problem_(problem),
      most_workspace_(static_cast<uint64_t>(std::max<int64_t>(most_workspace - kAlignmentRoom, 0))),
      room_(most_workspace_),
      described_(FirstOf(LayOut(problem.a, problem.from, problem.batch, &a_),
                         LayOut(problem.b, problem.from, problem.batch, &b_),
                         LayOut(problem.d, problem.to, problem.batch, &d_))) {
  const LtChoice* choice = nullptr;
  if (Choose(&choice) == cudaSuccess) room_ = choice->workspace;
}

int64_t LtProduct::workspace_bytes() const {
  return room_ == 0 ? 0 : static_cast<int64_t>(room_) + kAlignmentRoom;
}

cublasStatus_t LtProduct::Describe(const void* bias, cublasLtMatmulDescOpaque_t* desc) const {
  const cublasComputeType_t compute =
      problem_.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasStatus_t status = cublasLtMatmulDescInit(desc, compute, CUDA_R_32F);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto operation = [](const LtMatrix& m) -> int32_t {
    return m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  status = FirstOf(Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(problem_.a)),
                   Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(problem_.b)));
  if (problem_.added != LtAdded::kBias) return status;
  const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  return FirstOf(status, Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue),
                 Set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
}

int LtProduct::Decide(uint64_t most_workspace, LtChoice* choice) const {
  // The heuristic reads no bias, only how its address is aligned.
  const void* const like_bias = reinterpret_cast<const void*>(kGivenAlignment);
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatmulPreferenceOpaque_t preference;
  const cublasStatus_t status = FirstOf(described_, Describe(like_bias, &desc),
                                        Prefer(problem_, most_workspace, &preference));
  if (status != CUBLAS_STATUS_SUCCESS) return ErrorOf(status);
  cublasLtMatmulHeuristicResult_t result = {};
  int results = 0;
  const cublasStatus_t answer =
      cublasLtMatmulAlgoGetHeuristic(choice->handle, &desc, Read(a_), Read(b_), Read(d_), Read(d_),
                                     &preference, 1, &result, &results);
  // It says of some shapes that they are none.
  const bool is_refused =
      answer == CUBLAS_STATUS_NOT_SUPPORTED || answer == CUBLAS_STATUS_INVALID_VALUE;
  if (answer != CUBLAS_STATUS_SUCCESS && !is_refused) return ErrorOf(answer);
  choice->served = !is_refused && results == 1 && result.state == CUBLAS_STATUS_SUCCESS;
  choice->algo = result.algo;
  choice->workspace = choice->served ? result.workspaceSize : 0;
  return cudaSuccess;
}

int LtProduct::Choose(const LtChoice** choice) const {
  int device = 0;
  const int error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = choices_.find(device);
  if (found != choices_.end()) {
    *choice = &found->second;
    return cudaSuccess;
  }
  LtChoice made;
  const int without_handle = ErrorOf(Handles().Of(device, &made.handle));
  if (without_handle != cudaSuccess) return without_handle;
  int undecided = Decide(most_workspace_, &made);
  // Another kind of GPU than the first has its algorithm for as much as was asked for.
  if (undecided == cudaSuccess && made.workspace > room_) undecided = Decide(room_, &made);
  if (undecided != cudaSuccess) return undecided;
  *choice = &choices_.emplace(device, made).first->second;
  return cudaSuccess;
}

int LtProduct::Run(const LtChoice& choice, Stream stream, const LtPlaces& places,
                   void* workspace) const {
  return RunLoops(choice, stream, 0, false, places, AlignedUp(workspace));
}

int LtProduct::RunLoops(const LtChoice& choice, Stream stream, size_t level, bool later,
                        const LtPlaces& places, void* workspace) const {
  if (level == problem_.around.size()) return RunOne(choice, stream, later, places, workspace);
  const EinsumLoop& loop = problem_.around[level];
  const int64_t from = SizeOf(problem_.from), to = SizeOf(problem_.to);
  const int64_t in_a = loop.stride[problem_.swapped ? 1 : 0] * from;
  const int64_t in_b = loop.stride[problem_.swapped ? 0 : 1] * from;
  LtPlaces at = places;
  for (int64_t i = 0; i < loop.size; ++i) {
    const bool adds = later || (level >= problem_.first_summed && i > 0);
    const int error = RunLoops(choice, stream, level + 1, adds, at, workspace);
    if (error != cudaSuccess) return error;
    at.a = static_cast<const char*>(at.a) + in_a;
    at.b = static_cast<const char*>(at.b) + in_b;
    at.d = static_cast<char*>(at.d) + loop.stride[2] * to;
    if (problem_.added == LtAdded::kMatrix) {
      at.added = static_cast<const char*>(at.added) + loop.stride[2] * to;
    }
  }
  return cudaSuccess;
}

int LtProduct::RunOne(const LtChoice& choice, Stream stream, bool later, const LtPlaces& places,
                      void* workspace) const {
  if (!AreAligned(problem_, places)) return cudaErrorInvalidValue;
  // The bias is the call's own, so the description is too: calls may be made at the same time.
  cublasLtMatmulDescOpaque_t desc;
  const cublasStatus_t status = Describe(places.added, &desc);
  if (status != CUBLAS_STATUS_SUCCESS) return ErrorOf(status);
  const bool adds_matrix = problem_.added == LtAdded::kMatrix && !later;
  const bool adds = adds_matrix || later;
  return ErrorOf(cublasLtMatmul(choice.handle, &desc, &kOne, places.a, Read(a_), places.b, Read(b_),
                                adds ? &kOne : &kZero, adds_matrix ? places.added : places.d,
                                Read(d_), places.d, Read(d_), &choice.algo,
                                choice.workspace > 0 ? workspace : nullptr, choice.workspace,
                                static_cast<cudaStream_t>(stream)));
}

}  // namespace mgc::cuda
