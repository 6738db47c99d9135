// Rates of all CPU kernels, each alone, on all cores, and oneDNN's rate over a step's products. The
// cases follow from the kernel list (kernel_cases.h); nothing is added here for a new kernel. The
// counter `step_ms` is the kernel's share of one training step.
//
// Products in bf16 are called as functions: `bf16/NAME` packs plain operands in every call,
// `onednn_bf16/NAME` is oneDNN on operands packed before. With --benchmark_repetitions the fastest
// is the time of `min` and the rate of `max`.
//
// `instructions/RANKS` are steps whose kernels do nothing: `ns_each` is what an instruction takes
// of a thread, in the fastest step. Eight ranks also wait for each other, and make their sums.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontends/model_config.h"
#include "graph/types/bfloat16.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "runtime/load/kernel_table.h"
#include "runtime/run/workers.h"
#include "tools/benchmarks/instruction_cost.h"
#include "tools/benchmarks/kernel_cases.h"
#include "tools/benchmarks/products.h"

namespace mgc {
namespace {

constexpr int64_t kLayers = 12, kSequences = 4, kSequence = 256;

int Threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// Fills a tensor: reals within [-0.5, 0.5), scalars 0.5, integers counting from 0.
void Fill(const TensorType& type, int64_t max_index, std::vector<char>* bytes) {
  const size_t n = bytes->size() / static_cast<size_t>(SizeOf(type.dtype));
  for (size_t i = 0; i < n; ++i) {
    if (type.dtype == DType::kI64) {
      reinterpret_cast<int64_t*>(bytes->data())[i] = static_cast<int64_t>(i) % max_index;
    } else if (type.dtype == DType::kF64) {
      reinterpret_cast<double*>(bytes->data())[i] = 0.5;
    } else {
      const float real = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
      if (type.dtype == DType::kBF16) {
        reinterpret_cast<Bfloat16*>(bytes->data())[i] = ToBfloat16(real);
      } else {
        reinterpret_cast<float*>(bytes->data())[i] = real;
      }
    }
  }
}

// The memory of one case: slots that a plan puts at one place share it.
class CaseMemory {
 public:
  CaseMemory(const KernelCase& c, const Mesh& mesh) {
    for (int slot : c.instr->inputs) inputs_.push_back(Place(c, slot, mesh));
    for (int slot : c.instr->outputs) outputs_.push_back(Place(c, slot, mesh));
  }

  KernelRun Run(void* workspace) const { return {inputs_, outputs_, workspace, 0}; }
  double bytes() const { return bytes_; }  // read and written

 private:
  void* Place(const KernelCase& c, int index, const Mesh& mesh) {
    const Slot& slot = c.segment->slots[static_cast<size_t>(index)];
    std::vector<char>& room = rooms_[{slot.formal, slot.offset}];
    const int64_t size = LocalElements(slot.type, slot.sharding, mesh) * SizeOf(slot.type.dtype);
    bytes_ += static_cast<double>(size);
    if (room.empty()) {
      room.resize(static_cast<size_t>(size));
      Fill(slot.type, c.max_index, &room);
    }
    return room.data();
  }

  std::map<std::pair<int, int64_t>, std::vector<char>> rooms_;
  std::vector<void*> inputs_, outputs_;
  double bytes_ = 0;
};

// Points of the op's loop times what one costs.
double FlopsOf(const KernelCase& c) {
  std::vector<const TensorType*> operands, results;
  for (int i : c.instr->inputs) operands.push_back(&c.segment->slots[static_cast<size_t>(i)].type);
  for (int i : c.instr->outputs) results.push_back(&c.segment->slots[static_cast<size_t>(i)].type);
  const auto rule = RuleOf(*c.instr->op, OpUse{c.instr->attrs, operands, results});
  if (!rule.ok()) return 0;
  return std::accumulate(
      rule->factors.begin(), rule->factors.end(), c.instr->op->flops_per_point,
      [](double product, const Factor& f) { return product * static_cast<double>(f.size); });
}

void Count(benchmark::State& state, int64_t calls, double flops, double bytes) {
  using benchmark::Counter;
  state.counters["GFLOP/s"] = Counter(flops / 1e9, Counter::kIsIterationInvariantRate);
  if (bytes > 0) state.counters["GB/s"] = Counter(bytes / 1e9, Counter::kIsIterationInvariantRate);
  if (calls == 0) return;
  state.counters["step_ms"] = Counter(1e-3 / static_cast<double>(calls),
                                      Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void BenchKernel(benchmark::State& state, const KernelCase& c, KernelTable& table,
                 const Mesh& mesh) {
  const Kernel* kernel = table.Find(*c.segment, *c.instr, 0, 0);
  if (kernel == nullptr) return state.SkipWithError("no kernel");
  const CaseMemory memory(c, mesh);
  Workers workers(Threads(), Threads());
  std::vector<char> workspace(static_cast<size_t>(kernel->workspace_bytes(workers.width())));
  for ([[maybe_unused]] auto _ : state) {
    const absl::Status status = kernel->Run(memory.Run(workspace.data()), workers);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  Count(state, c.calls, FlopsOf(c), memory.bytes());
}

void CountProduct(benchmark::State& state, const StepProduct& product) {
  const double flops = FlopsOf(std::vector<StepProduct>{product});
  Count(state, product.calls, flops / static_cast<double>(product.calls), 0);
}

void BenchOneDnn(benchmark::State& state, const StepProduct& product) {
  const cpu::GemmShape& s = product.shape;
  const auto kernel = cpu::OneDnnMatmul::Create(s);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  const std::vector<float> a(static_cast<size_t>(s.batch * s.m * s.k), 0.01f);
  const std::vector<float> b(static_cast<size_t>(s.batch * s.k * s.n), -0.02f);
  std::vector<float> result(static_cast<size_t>(s.batch * s.m * s.n));
  for ([[maybe_unused]] auto _ : state) (*kernel)->Run(a.data(), b.data(), result.data());
  CountProduct(state, product);
}

// Operands and result of a product in bf16: a sum is f32, any other result bf16.
struct NarrowOperands {
  explicit NarrowOperands(const cpu::GemmShape& s)
      : a(static_cast<size_t>(s.batch * s.m * s.k), ToBfloat16(0.01f)),
        b(static_cast<size_t>(s.batch * s.k * s.n), ToBfloat16(-0.02f)),
        sums(s.accumulate ? static_cast<size_t>(s.batch * s.m * s.n) : 0),
        result(s.accumulate ? 0 : static_cast<size_t>(s.batch * s.m * s.n)) {}

  std::vector<Bfloat16> a, b;
  std::vector<float> sums;
  std::vector<Bfloat16> result;
};

void BenchBf16(benchmark::State& state, const StepProduct& product) {
  const cpu::GemmShape& s = product.shape;
  NarrowOperands x(s);
  Workers workers(Threads(), Threads());
  std::vector<float> workspace(
      static_cast<size_t>(cpu::NarrowGemmWorkspaceFloats(s.m, s.n, s.k, workers.width())));
  for ([[maybe_unused]] auto _ : state) {
    if (s.accumulate) {
      cpu::Gemm(workers, s, x.a.data(), x.b.data(), nullptr, x.sums.data(), workspace.data());
    } else {
      cpu::Gemm(workers, s, x.a.data(), x.b.data(), nullptr, x.result.data(), workspace.data());
    }
  }
  CountProduct(state, product);
}

void BenchOneDnnBf16(benchmark::State& state, const StepProduct& product) {
  NarrowOperands x(product.shape);
  const auto kernel = cpu::OneDnnPackedMatmul::Create(product.shape, x.a.data(), x.b.data());
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  state.SetLabel((*kernel)->implementation());
  void* c = x.sums.empty() ? static_cast<void*>(x.result.data()) : x.sums.data();
  for ([[maybe_unused]] auto _ : state) (*kernel)->Run(c);
  CountProduct(state, product);
}

// Steps of 64 micro-batches.
void BenchInstructions(benchmark::State& state, int ranks, int workers) {
  ParallelConfig parallel;
  parallel.micro_batch_size = 1;
  parallel.global_batch_size = 64;
  parallel.world_size = ranks;
  parallel.tp = parallel.pp = ranks == 8 ? 2 : 1;
  const auto steps = EmptySteps::Create(parallel, workers);
  if (!steps.ok()) return state.SkipWithError(steps.status().ToString().c_str());
  double fastest = std::numeric_limits<double>::infinity();
  for ([[maybe_unused]] auto _ : state) {
    const auto ns = (*steps)->Step();
    if (!ns.ok()) return state.SkipWithError(ns.status().ToString().c_str());
    fastest = std::min(fastest, *ns);
  }
  state.counters["instructions"] = static_cast<double>((*steps)->instructions());
  state.counters["ns_each"] = fastest;
}

double Least(const std::vector<double>& all) { return *std::min_element(all.begin(), all.end()); }
double Greatest(const std::vector<double>& all) {
  return *std::max_element(all.begin(), all.end());
}

void Register(const std::string& name, const std::function<void(benchmark::State&)>& bench) {
#ifndef __clang_analyzer__  // it takes what the library keeps for a leak
  benchmark::RegisterBenchmark(name.c_str(), bench)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond)
      ->ComputeStatistics("min", Least)
      ->ComputeStatistics("max", Greatest);
#endif
}

int Main() {
  const std::vector<KernelEntry> kernels = CpuKernels();
  const auto cases = KernelCases::Create(kernels, kLayers, kSequence);
  const auto gpt2 = LoadModelPreset("gpt2-124m");
  if (!cases.ok() || !gpt2.ok()) {
    std::cerr << cases.status() << gpt2.status() << "\n";
    return EXIT_FAILURE;
  }
  const Mesh mesh;
  KernelTable table(kernels, mesh, /*seed=*/1, Threads());
  for (const KernelCase& c : (*cases)->list()) {
    Register(c.name, [&](benchmark::State& state) { BenchKernel(state, c, table, mesh); });
  }
  for (const StepProduct& product : ProductsOfStep(*gpt2, kSequences, kSequence)) {
    Register("onednn/" + product.name,
             [product](benchmark::State& state) { BenchOneDnn(state, product); });
    if (product.shape.batch > 1) continue;  // attention, which has kernels of its own
    Register("bf16/" + product.name,
             [product](benchmark::State& state) { BenchBf16(state, product); });
    Register("onednn_bf16/" + product.name,
             [product](benchmark::State& state) { BenchOneDnnBf16(state, product); });
  }
  Register("instructions/one_rank",
           [](benchmark::State& state) { BenchInstructions(state, 1, 1); });
  Register("instructions/eight_ranks",
           [](benchmark::State& state) { BenchInstructions(state, 8, Threads()); });
  benchmark::RunSpecifiedBenchmarks();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  return mgc::Main();
}
