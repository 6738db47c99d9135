#include "tools/benchmarks/products.h"

#include <cmath>

#include "gtest/gtest.h"

namespace mgc {
namespace {

ModelConfig Small() {
  ModelConfig config;
  config.layers = 3;
  config.hidden = 32;
  config.heads = config.kv_heads = 4;
  config.head_dim = 8;
  config.ffn = 128;
  config.vocab = 101;
  return config;
}

// Two flops a multiply-add, three products a weight and token; six products of attention.
TEST(ProductsOfStep, HaveTheFlopsOfTheModel) {
  const double tokens = 2 * 16;
  const double weights = 3 * (4 * 32 * 32 + 2 * 32 * 128) + 101 * 32;
  const double attention = 3.0 * 6 * 2 * tokens * 16 * 32;
  EXPECT_EQ(FlopsOf(ProductsOfStep(Small(), 2, 16)), 6 * tokens * weights + attention);
}

TEST(ProductsOfStep, AddOnlyWeightGradients) {
  for (const StepProduct& product : ProductsOfStep(Small(), 2, 16)) {
    EXPECT_EQ(product.shape.accumulate, product.name.find("weight") != std::string::npos)
        << product.name;
  }
}

TEST(ProductRunner, RunsAll) {
  const std::vector<StepProduct> products = ProductsOfStep(Small(), 2, 16);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (const ProductsBy by : {ProductsBy::kOneDnn, ProductsBy::kOwn}) {
      auto runner = ProductRunner::Create(products, by, type, 2);
      if (absl::IsUnimplemented(runner.status())) continue;  // oneDNN's bf16 needs AVX-512
      ASSERT_TRUE(runner.ok()) << runner.status();
      EXPECT_GT((*runner)->Step()->seconds, 0);
    }
  }
}

}  // namespace
}  // namespace mgc
