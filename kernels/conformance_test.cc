// Every kernel of the CPU against the meaning of its op, over the cases of the op table: as on one
// device, as a tile that lies inside a larger tensor, and for a later sample.
#include "kernels/testing/conformance.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/op_case.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/kernel.h"
#include "kernels/spec.h"
#include "kernels/testing/call_threads.h"
#include "kernels/testing/kernel_case.h"

namespace mgc {
namespace {

std::vector<std::vector<char>> RunKernel(const Kernel& kernel, const KernelSpec& spec,
                                         const Place& place,
                                         const std::vector<RealTensor>& operands, int width,
                                         const std::vector<InPlace>& in_place = {},
                                         SimdLevel level = BestSimdLevel()) {
  return RunGuarded(spec, operands, in_place, kernel.workspace_bytes(width),
                    [&](GuardedBlocks* all) {
                      std::vector<void*> in, out;
                      for (int block : all->inputs) in.push_back(all->At(block));
                      for (int block : all->outputs) out.push_back(all->At(block));
                      CallThreads parallel(width, level);
                      KernelRun run;
                      run.inputs = in;
                      run.outputs = out;
                      run.workspace = all->At(all->workspace);
                      run.first_sample = place.first_sample;
                      const absl::Status status = kernel.Run(run, parallel);
                      EXPECT_TRUE(status.ok()) << status;
                    });
}

class Conformance : public testing::TestWithParam<BoundCase> {};

TEST_P(Conformance, AgreesWithTheMeaning) {
  const BoundCase& c = GetParam();
  const auto factory = CpuFactories().find(c.op->name);
  ASSERT_NE(factory, CpuFactories().end()) << "no kernel";
  for (const Place& place : {Place{false, 0}, Place{true, 0}, Place{true, 3}}) {
    SCOPED_TRACE(absl::StrCat("seed ", kDrawSeed, ", shifted ", place.shifted, ", first sample ",
                              place.first_sample));
    const KernelSpec spec = SpecOf(c, place);
    const absl::StatusOr<std::unique_ptr<Kernel>> kernel = factory->second(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (int width : kScratchWidths) {
      EXPECT_LE((*kernel)->workspace_bytes(width), width * WorkspaceBoundOf(spec, KernelHost::kCpu))
          << width;
    }
    const std::vector<RealTensor> operands = TilesOf(c, spec, place);
    const auto serial = RunKernel(**kernel, spec, place, operands, 1);
    ExpectMeaning(spec, Meaning(spec, place, operands), serial, c.op_case->tolerance);
    EXPECT_EQ(serial, RunKernel(**kernel, spec, place, operands, 3)) << "width changes bits";
    for (const std::vector<InPlace>& in_place : PlacesOf(*c.op)) {
      EXPECT_EQ(serial, RunKernel(**kernel, spec, place, operands, 3, in_place));
    }
  }
}

// Of a dim that is cut unevenly the last tiles hold less than they have room for, or nothing.
TEST_P(Conformance, RoomThatHoldsNothingDoesNotCount) {
  const BoundCase& c = GetParam();
  for (int f = 0; f < static_cast<int>(c.rule.factors.size()); ++f) {
    if (!MayBePadded(c.rule, f)) continue;
    for (const bool empty : {false, true}) {
      SCOPED_TRACE(absl::StrCat("seed ", kDrawSeed, ", factor ",
                                c.rule.factors[static_cast<size_t>(f)].name,
                                empty ? ", empty" : ""));
      const Place place{false, 0, f, empty};
      const KernelSpec spec = SpecOf(c, place);
      const absl::StatusOr<std::unique_ptr<Kernel>> kernel = CpuFactories().at(c.op->name)(spec);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const std::vector<RealTensor> operands = TilesOf(c, spec, place);
      const auto serial = RunKernel(**kernel, spec, place, operands, 1);
      ExpectMeaning(spec, Meaning(spec, place, operands), serial, c.op_case->tolerance);
      EXPECT_EQ(serial, RunKernel(**kernel, spec, place, operands, 3)) << "width changes bits";
    }
  }
}

// Those of lower levels run where a user or another process of a run wants them.
TEST_P(Conformance, AgreesAtLowerLevels) {
  const BoundCase& c = GetParam();
  const Place place{true, 3};
  const KernelSpec spec = SpecOf(c, place);
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = CpuFactories().at(c.op->name)(spec);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::vector<RealTensor> operands = TilesOf(c, spec, place);
  const std::vector<RealTensor> meaning = Meaning(spec, place, operands);
  for (SimdLevel level : AllSimdLevels()) {
    if (level >= BestSimdLevel()) break;
    SCOPED_TRACE(absl::StrCat("seed ", kDrawSeed, ", ", NameOf(level)));
    const auto serial = RunKernel(**kernel, spec, place, operands, 1, {}, level);
    ExpectMeaning(spec, meaning, serial, c.op_case->tolerance);
    EXPECT_EQ(serial, RunKernel(**kernel, spec, place, operands, 3, {}, level));
  }
}

std::string NameOfCase(const testing::TestParamInfo<BoundCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, testing::ValuesIn(AllCases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(NarrowCases, Conformance, testing::ValuesIn(NarrowCases()), NameOfCase);

// A dropped element's index is a product of the sample's number, which passes 2^63 in a long run.
TEST(CpuKernels, DropTheSameElementsHoweverLateTheSample) {
  const Place place{false, int64_t{1} << 61};
  for (const BoundCase& c : AllCases()) {
    const Attrs& attrs = c.op_case->attrs;
    if (attrs.Find("p") == nullptr) continue;
    SCOPED_TRACE(c.name);
    const KernelSpec spec = SpecOf(c, place);
    const absl::StatusOr<std::unique_ptr<Kernel>> kernel = CpuFactories().at(c.op->name)(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const std::vector<RealTensor> operands = TilesOf(c, spec, place);
    ExpectMeaning(spec, Meaning(spec, place, operands),
                  RunKernel(**kernel, spec, place, operands, 1), c.op_case->tolerance);
  }
}

// A type that nobody has thought of is refused, not moved as if it had another's size.
TEST(CpuKernels, RefuseAnUnknownElementType) {
  const absl::StatusOr<BoundCase> bound = BindCase(*FindOp("transpose"), 0);
  ASSERT_TRUE(bound.ok()) << bound.status();
  KernelSpec spec = SpecOf(*bound, Place{});
  spec.input_types[0].dtype = spec.output_types[0].dtype = static_cast<DType>(200);
  EXPECT_EQ(CpuFactories().at("transpose")(spec).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CpuKernels, ServeTheTableAndNothingElse) {
  std::set<std::string> ops = {"lift", "shard_slice"};  // the collectives that move nothing
  for (const OpDef& op : AllOps()) {
    if (!op.collective) ops.insert(op.name);
  }
  std::set<std::string> served;
  for (const KernelEntry& entry : CpuKernels()) {
    EXPECT_TRUE(served.insert(entry.op).second) << entry.op << " is listed twice";
  }
  EXPECT_EQ(served, ops);
}

}  // namespace
}  // namespace mgc
