// Every kernel of GPUs against the meaning of its op, over the cases of the op table, as
// kernels/conformance_test.cc has the CPU's: on the emulator for several orders of threads, and on
// a GPU as it is.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/op_case.h"
#include "gtest/gtest.h"
#include "kernels/cuda/api.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/kernel.h"
#include "kernels/parallel.h"
#include "kernels/spec.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/kernel_case.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace mgc {
namespace {

#ifdef MGC_CUDA_EMULATED
constexpr int kOrders = 3;
void SetOrder(int order) { cuda::emulator::SetSeed(static_cast<uint64_t>(order)); }
std::string Fault() { return cuda::emulator::TakeFault(); }
#else
constexpr int kOrders = 2;  // the same twice
void SetOrder(int /*order*/) {}
std::string Fault() { return ""; }
#endif

const std::map<std::string, KernelFactory>& CudaFactories() {
  static const std::map<std::string, KernelFactory> factories = [] {
    std::map<std::string, KernelFactory> made;
    for (const KernelEntry& entry : CudaKernels()) made[entry.op] = entry.make;
    return made;
  }();
  return factories;
}

void Check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// Memory of the device, freed with this.
class DeviceBlock {
 public:
  explicit DeviceBlock(size_t bytes) { Check(cudaMalloc(&at_, bytes)); }
  ~DeviceBlock() { cudaFree(at_); }
  DeviceBlock(DeviceBlock&& other) noexcept : at_(other.at_) { other.at_ = nullptr; }

  char* at() const { return static_cast<char*>(at_); }

 private:
  void* at_ = nullptr;
};

// Blocks copied to the device, guards included, the kernel run there, and blocks copied back.
void RunOnDevice(const Kernel& kernel, const Place& place, GuardedBlocks* all) {
  std::vector<DeviceBlock> blocks;
  for (const std::vector<char>& block : all->blocks) {
    blocks.emplace_back(block.size());
    Check(cudaMemcpy(blocks.back().at(), block.data(), block.size(), cudaMemcpyHostToDevice));
  }
  const auto at = [&](int block) -> void* {
    return blocks[static_cast<size_t>(block)].at() + GuardedBlocks::kGuardBytes;
  };
  std::vector<void*> in, out;
  for (int block : all->inputs) in.push_back(at(block));
  for (int block : all->outputs) out.push_back(at(block));
  constexpr int64_t kInStep = 2;
  const int64_t step_sample = place.first_sample - kInStep;
  const DeviceBlock sample(sizeof(step_sample));
  Check(cudaMemcpy(sample.at(), &step_sample, sizeof(step_sample), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  Check(cudaStreamCreate(&stream));
  KernelRun run;
  run.inputs = in;
  run.outputs = out;
  run.workspace = at(all->workspace);
  run.first_sample = place.first_sample;
  run.queue = stream;
  run.step_sample = reinterpret_cast<const int64_t*>(sample.at());
  run.sample_in_step = kInStep;
  SerialParallel parallel;
  const absl::Status status = kernel.Run(run, parallel);
  EXPECT_TRUE(status.ok()) << status;
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
  for (size_t b = 0; b < blocks.size(); ++b) {
    std::vector<char>& block = all->blocks[b];
    Check(cudaMemcpy(block.data(), blocks[b].at(), block.size(), cudaMemcpyDeviceToHost));
  }
}

std::vector<std::vector<char>> RunKernel(const Kernel& kernel, const KernelSpec& spec,
                                         const Place& place,
                                         const std::vector<RealTensor>& operands,
                                         const std::vector<InPlace>& in_place = {}) {
  std::vector<std::vector<char>> results =
      RunGuarded(spec, operands, in_place, kernel.workspace_bytes(1),
                 [&](GuardedBlocks* all) { RunOnDevice(kernel, place, all); });
  EXPECT_EQ(Fault(), "");
  return results;
}

// Runs a kernel in several orders of its threads, apart and in place, and compares with the
// meaning.
void ExpectConforms(const BoundCase& c, const Place& place, bool in_place) {
  const KernelSpec spec = SpecOf(c, place);
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = CudaFactories().at(c.op->name)(spec);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_LE((*kernel)->workspace_bytes(1), WorkspaceBoundOf(spec, KernelHost::kGpu));
  const std::vector<RealTensor> operands = TilesOf(c, spec, place);
  SetOrder(0);
  const auto first = RunKernel(**kernel, spec, place, operands);
  ExpectMeaning(spec, Meaning(spec, place, operands), first, c.op_case->tolerance);
  for (int order = 1; order < kOrders; ++order) {
    SetOrder(order);
    EXPECT_EQ(first, RunKernel(**kernel, spec, place, operands)) << "order changes bits";
  }
  if (!in_place) return;
  for (const std::vector<InPlace>& places : PlacesOf(*c.op)) {
    EXPECT_EQ(first, RunKernel(**kernel, spec, place, operands, places)) << "place changes bits";
  }
}

class CudaConformance : public testing::TestWithParam<BoundCase> {};

TEST_P(CudaConformance, AgreesWithTheMeaning) {
  for (const Place& place : {Place{false, 0}, Place{true, 0}, Place{true, 3}}) {
    SCOPED_TRACE(absl::StrCat("seed ", kDrawSeed, ", shifted ", place.shifted, ", first sample ",
                              place.first_sample));
    ExpectConforms(GetParam(), place, true);
  }
}

// Of a dim that is cut unevenly the last tiles hold less than they have room for, or nothing.
TEST_P(CudaConformance, RoomThatHoldsNothingDoesNotCount) {
  const BoundCase& c = GetParam();
  for (int f = 0; f < static_cast<int>(c.rule.factors.size()); ++f) {
    if (!MayBePadded(c.rule, f)) continue;
    for (const bool empty : {false, true}) {
      SCOPED_TRACE(absl::StrCat("seed ", kDrawSeed, ", factor ",
                                c.rule.factors[static_cast<size_t>(f)].name,
                                empty ? ", empty" : ""));
      ExpectConforms(c, Place{false, 0, f, empty}, false);
    }
  }
}

// A dropped element's index is a product of the sample's number, which passes 2^63 in a long run.
TEST_P(CudaConformance, DropsTheSameElementsHoweverLateTheSample) {
  if (GetParam().op_case->attrs.Find("p") == nullptr) return;
  ExpectConforms(GetParam(), Place{false, int64_t{1} << 61}, false);
}

std::vector<BoundCase> Served(std::vector<BoundCase> cases) {
  std::vector<BoundCase> served;
  for (BoundCase& c : cases) {
    if (CudaFactories().count(c.op->name) > 0) served.push_back(std::move(c));
  }
  return served;
}

std::string NameOfCase(const testing::TestParamInfo<BoundCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, CudaConformance, testing::ValuesIn(Served(AllCases())), NameOfCase);
INSTANTIATE_TEST_SUITE_P(NarrowCases, CudaConformance, testing::ValuesIn(Served(NarrowCases())),
                         NameOfCase);

TEST(CudaKernels, ServeTheTableAndNothingElse) {
  std::set<std::string> ops = {"lift", "shard_slice"};  // the collectives that move nothing
  for (const OpDef& op : AllOps()) {
    if (!op.collective) ops.insert(op.name);
  }
  std::set<std::string> served;
  for (const KernelEntry& entry : CudaKernels()) {
    EXPECT_TRUE(served.insert(entry.op).second) << entry.op << " is listed twice";
  }
  EXPECT_EQ(served, ops);
}

}  // namespace
}  // namespace mgc
