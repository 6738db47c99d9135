#include "kernels/testing/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr char kGuard = 0x5a;
constexpr char kNan = static_cast<char>(0xff);

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
    case DType::kI8:
      return BytesAs(std::vector<int8_t>(tensor.real.begin(), tensor.real.end()));
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
    case DType::kI8:
      return ElementAs<int8_t>(bytes, i);
  }
  ADD_FAILURE() << type.ToString() << " has no form here";
  return 0;
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
    case DType::kI8:
      return std::round(value);
  }
  ADD_FAILURE() << "element type " << static_cast<int>(dtype) << " has no rounding here";
  return 0;
}

}  // namespace

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

std::vector<std::vector<char>> RunGuarded(const KernelSpec& spec,
                                          const std::vector<RealTensor>& operands,
                                          const std::vector<InPlace>& in_place,
                                          int64_t workspace_bytes,
                                          const std::function<void(GuardedBlocks*)>& run) {
  GuardedBlocks all;
  const auto add = [&all](int64_t bytes, char fill) {
    std::vector<char> block(static_cast<size_t>(bytes + 2 * GuardedBlocks::kGuardBytes), kGuard);
    std::memset(block.data() + GuardedBlocks::kGuardBytes, fill, static_cast<size_t>(bytes));
    all.blocks.push_back(std::move(block));
    return static_cast<int>(all.blocks.size()) - 1;
  };
  const auto size_of = [&all](int block) {
    return static_cast<int64_t>(all.blocks[static_cast<size_t>(block)].size()) -
           2 * GuardedBlocks::kGuardBytes;
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<char> bytes = BytesOf(spec.input_types[i], operands[i]);
    all.inputs.push_back(add(static_cast<int64_t>(bytes.size()), 0));
    std::memcpy(all.At(all.inputs.back()), bytes.data(), bytes.size());
  }
  for (size_t r = 0; r < spec.output_types.size(); ++r) {
    const int64_t elements = NumElements(spec.output_shapes[r]);
    all.outputs.push_back(add(elements * SizeOf(spec.output_types[r].dtype), kNan));
  }
  for (const InPlace& pair : in_place) {
    const size_t i = static_cast<size_t>(pair.operand);
    const int result = all.outputs[static_cast<size_t>(pair.result)];
    if (i >= all.inputs.size()) continue;  // an op of any number of operands may have fewer
    if (size_of(all.inputs[i]) != size_of(result)) continue;  // it is broadcast
    std::memcpy(all.At(result), all.At(all.inputs[i]), static_cast<size_t>(size_of(result)));
    all.inputs[i] = result;
  }
  all.workspace = add(workspace_bytes, kGuard);
  run(&all);
  std::vector<std::vector<char>> results;
  for (const std::vector<char>& block : all.blocks) {
    for (int64_t i = 0; i < GuardedBlocks::kGuardBytes; ++i) {
      EXPECT_EQ(block[static_cast<size_t>(i)], kGuard) << "written before an array";
      EXPECT_EQ(block[block.size() - 1 - static_cast<size_t>(i)], kGuard)
          << "written after an array";
    }
  }
  for (int output : all.outputs) {
    const char* const at = static_cast<const char*>(all.At(output));
    results.emplace_back(at, at + size_of(output));
  }
  return results;
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

}  // namespace mgc
