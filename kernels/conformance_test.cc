// Every kernel of the CPU against the meaning of its op, over the cases of the op table: as on one
// device, as a tile that lies inside a larger tensor, and for a later sample.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/op_case.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/kernel.h"
#include "kernels/testing/call_threads.h"
#include "kernels/testing/kernel_case.h"

namespace mgc {
namespace {

constexpr uint64_t kDrawSeed = 20240301;
constexpr int64_t kGuardBytes = 64;
constexpr char kGuard = 0x5a;

template <class T>
std::vector<char> BytesAs(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Bytes of a tensor of `type`.
std::vector<char> BytesOf(const TensorType& type, const RealTensor& tensor) {
  switch (type.dtype) {
    case DType::kF32:
      return BytesAs(std::vector<float>(tensor.real.begin(), tensor.real.end()));
    case DType::kF64:
      return BytesAs(tensor.real);
    case DType::kI64:
      return BytesAs(tensor.index);
    case DType::kBF16: {
      std::vector<Bfloat16> values;
      for (double value : tensor.real) values.push_back(ToBfloat16(static_cast<float>(value)));
      return BytesAs(values);
    }
    case DType::kF16: {
      std::vector<Float16> values;
      for (double value : tensor.real) values.push_back(ToFloat16(static_cast<float>(value)));
      return BytesAs(values);
    }
  }
  ADD_FAILURE() << type.ToString() << " has no form here";
  return {};
}

template <class T>
T ElementAs(const char* bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes + sizeof(T) * i, sizeof(T));
  return value;
}

double ElementOf(const TensorType& type, const char* bytes, size_t i) {
  switch (type.dtype) {
    case DType::kF32:
      return ElementAs<float>(bytes, i);
    case DType::kF64:
      return ElementAs<double>(bytes, i);
    case DType::kI64:
      return static_cast<double>(ElementAs<int64_t>(bytes, i));
    case DType::kBF16:
      return ToFloat(ElementAs<Bfloat16>(bytes, i));
    case DType::kF16:
      return ToFloat(ElementAs<Float16>(bytes, i));
  }
  ADD_FAILURE() << type.ToString() << " has no form here";
  return 0;
}

// Operands with padding, index operands moved to where the tile lies.
std::vector<RealTensor> TilesOf(const BoundCase& c, const KernelSpec& spec, const Place& place) {
  std::mt19937_64 random(kDrawSeed);
  std::vector<RealTensor> tiles;
  const std::vector<RealTensor> whole = DrawOperands(c, random);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<DimPiece> pieces;
    for (size_t d = 0; d < whole[i].shape.size(); ++d) {
      const DimFactors& dim = spec.rule.operands[i][d];
      const bool none = dim.size() == 1 && spec.pieces[static_cast<size_t>(dim[0])].valid == 0;
      pieces.push_back({0, none ? 0 : whole[i].shape[d], spec.input_shapes[i][d]});
    }
    tiles.push_back(TileOf(whole[i], pieces));
    if (!place.shifted) continue;
    // Half of the ids move into the tile, the others stay outside.
    for (size_t k = 0; k < tiles.back().index.size(); k += 2) {
      tiles.back().index[k] += c.operands[i].bound;
    }
  }
  return tiles;
}

double RoundedTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF64:
    case DType::kI64:
      return value;
    case DType::kBF16:
      return ToFloat(ToBfloat16(static_cast<float>(value)));
    case DType::kF16:
      return ToFloat(ToFloat16(static_cast<float>(value)));
  }
  ADD_FAILURE() << "element type " << static_cast<int>(dtype) << " has no rounding here";
  return 0;
}

// What the meaning makes of operands rounded to their types.
std::vector<RealTensor> Meaning(const KernelSpec& spec, const Place& place,
                                std::vector<RealTensor> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    for (double& value : operands[i].real) value = RoundedTo(spec.input_types[i].dtype, value);
  }
  std::vector<RealTensor> results;
  for (size_t r = 0; r < spec.output_types.size(); ++r) {
    results.push_back(
        RealTensor::Make(spec.output_shapes[r], spec.output_types[r].dtype == DType::kI64));
  }
  const DoubleModel model;
  EvalContext<DoubleModel> context{model, spec.attrs, spec.rule, spec.pieces, spec.seed, {}, {}};
  for (size_t f = 0; f < spec.rule.factors.size(); ++f) {
    if (spec.rule.factors[f].dim_name == kSampleDim) context.pieces[f].begin += place.first_sample;
  }
  for (const RealTensor& operand : operands) context.inputs.push_back(&operand);
  for (RealTensor& result : results) context.outputs.push_back(&result);
  spec.op->eval(context);
  return results;
}

// Results as bytes, which begin as garbage between guards; some in the places of operands.
std::vector<std::vector<char>> RunKernel(const Kernel& kernel, const KernelSpec& spec,
                                         const Place& place,
                                         const std::vector<RealTensor>& operands, int width,
                                         const std::vector<InPlace>& in_place = {},
                                         SimdLevel level = BestSimdLevel()) {
  std::vector<std::vector<char>> inputs, outputs;
  std::vector<void*> in, out;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(BytesOf(spec.input_types[i], operands[i]));
    in.push_back(inputs.back().data());
  }
  for (size_t r = 0; r < spec.output_types.size(); ++r) {
    const int64_t bytes = NumElements(spec.output_shapes[r]) * SizeOf(spec.output_types[r].dtype);
    outputs.emplace_back(static_cast<size_t>(bytes + 2 * kGuardBytes), kGuard);
    std::memset(outputs.back().data() + kGuardBytes, 0xff, static_cast<size_t>(bytes));  // NaN
    out.push_back(outputs.back().data() + kGuardBytes);
  }
  for (const InPlace& pair : in_place) {
    const size_t i = static_cast<size_t>(pair.operand);
    const size_t r = static_cast<size_t>(pair.result);
    if (i >= inputs.size()) continue;  // an op of any number of operands may have fewer
    if (inputs[i].size() + 2 * kGuardBytes != outputs[r].size()) continue;  // it is broadcast
    std::memcpy(out[r], in[i], inputs[i].size());
    in[i] = out[r];
  }
  std::vector<char> workspace(static_cast<size_t>(kernel.workspace_bytes(width) + 2 * kGuardBytes),
                              kGuard);
  CallThreads parallel(width, level);
  const absl::Status status =
      kernel.Run({in, out, workspace.data() + kGuardBytes, place.first_sample}, parallel);
  EXPECT_TRUE(status.ok()) << status;
  outputs.push_back(workspace);
  for (std::vector<char>& output : outputs) {
    for (int64_t i = 0; i < kGuardBytes; ++i) {
      EXPECT_EQ(output[static_cast<size_t>(i)], kGuard) << "written before an array";
      EXPECT_EQ(output[output.size() - 1 - static_cast<size_t>(i)], kGuard)
          << "written after an array";
    }
    output.erase(output.begin(), output.begin() + kGuardBytes);
    output.resize(output.size() - static_cast<size_t>(kGuardBytes));
  }
  outputs.pop_back();
  return outputs;
}

void ExpectMeaning(const KernelSpec& spec, const std::vector<RealTensor>& expected,
                   const std::vector<std::vector<char>>& actual, double tolerance) {
  for (size_t r = 0; r < expected.size(); ++r) {
    const TensorType& type = spec.output_types[r];
    double largest = std::numeric_limits<double>::min();
    for (double value : expected[r].real) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    for (size_t i = 0; i < static_cast<size_t>(expected[r].size()); ++i) {
      const double value = ElementOf(type, actual[r].data(), i);
      if (type.dtype == DType::kI64) {
        ASSERT_EQ(value, static_cast<double>(expected[r].index[i]));
      } else if (std::isinf(expected[r].real[i])) {
        ASSERT_EQ(value, expected[r].real[i]);
      } else {
        ASSERT_NEAR(value, expected[r].real[i], tolerance * largest)
            << "result " << r << "[" << i << "]";
      }
    }
  }
}

// Each pair of result and operand that may share a place by itself, then as many as can at once.
std::vector<std::vector<InPlace>> PlacesOf(const OpDef& op) {
  std::vector<std::vector<InPlace>> places;
  std::vector<InPlace> together;
  for (const InPlace& pair : op.in_place) {
    places.push_back({pair});
    const bool taken = std::any_of(together.begin(), together.end(), [&](const InPlace& other) {
      return other.result == pair.result || other.operand == pair.operand;
    });
    if (!taken) together.push_back(pair);
  }
  places.push_back(std::move(together));
  return places;
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
      EXPECT_LE((*kernel)->workspace_bytes(width), width * WorkspaceBoundOf(spec)) << width;
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

// Whether a factor may be cut, and into unequal pieces: it has several elements and is merged with
// no other.
bool MayBePadded(const FactorRule& rule, int factor) {
  const Factor& cut = rule.factors[static_cast<size_t>(factor)];
  bool alone = !cut.whole && cut.size > 1;
  for (const std::vector<TensorFactors>* side : {&rule.operands, &rule.results}) {
    for (const TensorFactors& tensor : *side) {
      for (const DimFactors& dim : tensor) {
        const bool has = std::find(dim.begin(), dim.end(), factor) != dim.end();
        alone = alone && (!has || dim.size() == 1);
      }
    }
  }
  return alone;
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
  std::set<std::string> ops;
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
