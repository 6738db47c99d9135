// The emulated cuBLASLt sees what the library would leave undefined.
#include "kernels/cuda/emulator/cublas_lt.h"

#include <algorithm>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fault.h"

namespace mgc::cuda::emulator {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr size_t kArrayBytes = 64 * sizeof(float), kWorkspaceBytes = 1024;

// All that a call needs: D = A·B, 4 × 6 times 6 × 8 in f32.
struct Call {
  Call() {
    cublasLtCreate(&handle);
    cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulPreferenceInit(&preference);
    LayOut(4, 6, 4, &a);
    LayOut(6, 8, 6, &b);
    LayOut(4, 8, 4, &d);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const uint32_t alignment = 16;
      cublasLtMatmulPreferenceSetAttribute(&preference,
                                           static_cast<cublasLtMatmulPreferenceAttributes_t>(
                                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + matrix),
                                           &alignment, sizeof(alignment));
    }
    for (float** array : {&x, &y, &z}) cudaMalloc(reinterpret_cast<void**>(array), kArrayBytes);
    cudaMalloc(reinterpret_cast<void**>(&workspace), kWorkspaceBytes);
    const uint64_t workspace_bytes = kWorkspaceBytes;
    cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace_bytes, sizeof(workspace_bytes));
    for (size_t i = 0; i < 24; ++i) x[i] = 1;
    for (size_t i = 0; i < 48; ++i) y[i] = 2;
  }
  ~Call() {
    for (float* array : {x, y, z}) cudaFree(array);
    cudaFree(workspace);
  }

  static void LayOut(uint64_t rows, uint64_t cols, int64_t ld,
                     cublasLtMatrixLayoutOpaque_t* layout) {
    cublasLtMatrixLayoutInit(layout, CUDA_R_32F, rows, cols, ld);
  }
  void SetEpilogue(cublasLtEpilogue_t epilogue, const void* bias) {
    const uint32_t value = epilogue;
    cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &value, sizeof(value));
    cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
  }
  cublasStatus_t Choose() {
    int returned = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle, &desc, &a, &b, &d, &d, &preference, 1, &result,
                                          &returned);
  }
  cublasStatus_t Run(const void* at_x, void* at_workspace, size_t workspace_bytes) {
    return cublasLtMatmul(handle, &desc, &kOne, at_x, &a, y, &b, &kZero, z, &d, z, &d, &result.algo,
                          at_workspace, workspace_bytes, nullptr);
  }
  cublasStatus_t Run() { return Run(x, workspace, kWorkspaceBytes); }

  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t a, b, d;
  cublasLtMatmulPreferenceOpaque_t preference;
  cublasLtMatmulHeuristicResult_t result = {};
  // The device's memory, which the host can read here.
  float *x = nullptr, *y = nullptr, *z = nullptr;
  char* workspace = nullptr;
};

TEST(CublasLtTest, MultipliesWhatIsWhole) {
  Call call;
  ASSERT_EQ(call.Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(call.Run(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(call.z[i], 12.0f) << i;
}

// Refused where the algorithm is asked for.
TEST(CublasLtTest, RefusesProblemsThatAreNone) {
  const auto refused = [](const std::function<void(Call*)>& spoil, const char* why) {
    Call call;
    spoil(&call);
    EXPECT_EQ(call.Choose(), CUBLAS_STATUS_INVALID_VALUE) << why;
    EXPECT_EQ(TakeFault(), Text("cuBLASLt is given ", why));
  };
  refused([](Call* c) { cublasLtDestroy(c->handle); }, "a handle that does not live");
  refused([](Call* c) { c->a = {}; }, "a descriptor that is not initialized");
  refused([](Call* c) { c->preference = {}; }, "a descriptor that is not initialized");
  refused([](Call* c) { Call::LayOut(4, 6, 3, &c->a); },
          "a leading dimension below the number of rows");
  refused([](Call* c) { Call::LayOut(4, 5, 4, &c->a); },
          "an A and a B that are summed over two sizes");
  refused([](Call* c) { Call::LayOut(5, 6, 5, &c->a); }, "an A that has not the rows of D");
  refused([](Call* c) { Call::LayOut(6, 7, 6, &c->b); }, "a B that has not the columns of D");
  refused([](Call* c) { c->SetEpilogue(CUBLASLT_EPILOGUE_BIAS, nullptr); },
          "a bias without a place");
  refused([](Call* c) { cublasLtMatrixLayoutInit(&c->b, CUDA_R_16BF, 6, 8, 6); },
          "operands of two types");
  refused(
      [](Call* c) {
        const int32_t two = 2;
        for (cublasLtMatrixLayout_t layout : {&c->a, &c->b, &c->d}) {
          cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &two,
                                           sizeof(two));
        }
      },
      "results of a batch that overlap");
}

TEST(CublasLtTest, RefusesAttributesOfAnotherSize) {
  Call call;
  const int64_t value = 1;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(&call.desc, CUBLASLT_MATMUL_DESC_TRANSA, &value,
                                           sizeof(value)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(&call.a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &value,
                                             sizeof(value)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtDestroy(call.handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtDestroy(call.handle), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(TakeFault(), "");
}

// Refused where the algorithm is used.
TEST(CublasLtTest, RefusesCallsThatBreakWhatWasPromised) {
  const auto refused = [](const std::function<cublasStatus_t(Call*)>& run, const char* why) {
    Call call;
    ASSERT_EQ(call.Choose(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(run(&call), CUBLAS_STATUS_INVALID_VALUE) << why;
    EXPECT_EQ(TakeFault(), Text("cuBLASLt is given ", why));
  };
  refused(
      [](Call* c) {
        cublasLtDestroy(c->handle);
        return c->Run();
      },
      "a handle that does not live");
  refused(
      [](Call* c) {
        c->result = {};
        return c->Run();
      },
      "an algorithm that was never chosen");
  refused(
      [](Call* c) {
        c->SetEpilogue(CUBLASLT_EPILOGUE_BIAS, c->y);
        return c->Run();
      },
      "an algorithm that was chosen for another problem");
  refused([](Call* c) { return c->Run(c->x + 1, c->workspace, 256); },
          "a matrix that is not aligned as promised");
  refused([](Call* c) { return c->Run(c->x, c->workspace + 16, 256); },
          "workspace that is not aligned to 256 bytes");
}

TEST(CublasLtTest, RefusesMemoryThatIsNotTheDevicesOrEndsTooEarly) {
  Call call;
  ASSERT_EQ(call.Choose(), CUBLAS_STATUS_SUCCESS);
  alignas(256) const float of_host[64] = {};
  EXPECT_EQ(call.Run(of_host, call.workspace, 0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(TakeFault(), "cuBLASLt is given memory of the host");
  EXPECT_EQ(call.Run(call.x + 48, call.workspace, 0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(TakeFault(), testing::HasSubstr("a matrix that reads 32 bytes beyond the end"));
}

// Much is summed to little: the algorithm keeps parts of the sums in the workspace.
TEST(CublasLtTest, OverwritesTheWorkspaceThatItAskedFor) {
  Call call;
  Call::LayOut(1, 24, 1, &call.a);
  Call::LayOut(24, 2, 24, &call.b);
  Call::LayOut(1, 2, 1, &call.d);
  ASSERT_EQ(call.Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_GT(call.result.workspaceSize, 0u);
  ASSERT_LT(call.result.workspaceSize, kWorkspaceBytes);
  EXPECT_EQ(call.Run(call.x, call.workspace, call.result.workspaceSize - 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(TakeFault(), "cuBLASLt is given less workspace than the algorithm asks for");
  std::fill_n(call.workspace, kWorkspaceBytes, '\0');
  ASSERT_EQ(call.Run(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_NE(call.workspace[call.result.workspaceSize - 1], '\0');
  EXPECT_EQ(call.workspace[call.result.workspaceSize], '\0');
  EXPECT_EQ(call.z[0], 48.0f);
}

}  // namespace
}  // namespace mgc::cuda::emulator
