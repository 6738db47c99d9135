// The machines that ship with mgc. Rates are those of data sheets, efficiencies of micro-benchmarks
// that others have published: of products, copies and collectives by themselves, never of training.
//
// Sources, in brackets below:
//   [A100], [H100], [H200], [HGX B200]   NVIDIA's data sheets: SXM, without sparsity
//   [DGX A100], [DGX H100], [DGX B200]   NVIDIA's data sheets of the machines
//   [MAMF]             the most that a search over shapes found, in bf16 (Bekman, ml-engineering,
//                      compute/accelerator/README.md)
//   [Triton]           cuBLAS in f16 on an A100, n x n x n (Triton's tutorial on products)
//   [torch H100]       torch.mm, n x n x n (zzc0721/torch-performance-test-data, issue 79)
//   [torch A100 PCIe]  the same, issue 108
//   [torch B200]       torch.mm, n x n x n (pytorch/ao, pull request 2427)
//   [stream A100]      BabelStream's triad: 1,725 of 2,039 GB/s
//   [stream H100 NVL]  BabelStream's triad: 3,304 of 3,938 GB/s
//   [nccl N]           bus bandwidth in issue N of NVIDIA/nccl, [nccl-tests N] of nccl-tests
//   [NCCL]             src/graph/tuning.cc, protocol Simple: 8.4 us, and for every step of a ring
//                      3.4 us over NVLink, over a network 9.6 us (2.10) or 14 us (2.19)
//
// The efficiency of a large product is that of n x n x n with n from 4096 to 8192; what a shape
// that was searched for reaches says how far that is from the best. A latency is a collective's
// start and its first step. What says `estimate` has no source.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"
#include "graph/types/machine.h"

namespace mgc {
namespace {

constexpr int64_t kGB = 1'000'000'000;
constexpr int64_t kGiB = int64_t{1} << 30;

// Ranks are threads that share one memory. Rates of one core of a current server with AVX-512,
// measured with oneDNN (docs/machines.md); memory is a rank's share.
Machine CpuThreads() {
  Machine machine;
  machine.name = "cpu-threads";
  machine.memory = 8 * kGiB;
  machine.memory_bandwidth = 42e9;
  machine.memory_efficiency = 0.8;
  machine.op_overhead = 1e-6;  // estimate
  machine.compute = {{"f32", 210e9, 0.9}, {"bf16", 430e9, 0.9}, {"f64", 105e9, 0.9}};
  machine.tiers = {{"memory", kAnyRanks, 20e9, 0.8, 1e-6}};  // estimate
  return machine;
}

// Eight in a machine, joined by switches over NVLink, each with a port of its own to InfiniBand.
std::vector<NetworkTier> TiersOf(NetworkTier nvlink, NetworkTier infiniband) {
  nvlink.name = "nvlink";
  nvlink.ranks = 8;
  nvlink.hop = 3.4e-6;       // [NCCL]
  nvlink.latency = 11.8e-6;  // [NCCL]
  infiniband.name = "infiniband";
  infiniband.ranks = kAnyRanks;
  return {std::move(nvlink), std::move(infiniband)};
}

// The rate of bf16, that of f16, which is the same, and those of wider types.
std::vector<ComputeRate> RatesOf(const ComputeRate& bf16, const std::vector<ComputeRate>& wider) {
  std::vector<ComputeRate> rates = {bf16, bf16};
  rates[1].dtype = "f16";
  rates.insert(rates.end(), wider.begin(), wider.end());
  return rates;
}

Machine A100x8() {
  Machine machine;
  machine.name = "a100x8";
  machine.host = KernelHost::kGpu;
  machine.memory = 80 * kGiB;         // [A100]
  machine.memory_bandwidth = 2039e9;  // [A100]
  machine.memory_efficiency = 0.85;   // [stream A100]
  machine.op_overhead = 4e-6;         // estimate
  machine.compute = RatesOf(
      // [A100]; n = 4096, 1024, 2048 [Triton], 0.87 at best [MAMF]
      {"bf16", 312e12, 0.7, {{2.1e9, 0.35}, {1.7e10, 0.7}}},
      {{"tf32", 156e12, 0.69},   // [A100], [torch A100 PCIe]
       {"f32", 19.5e12, 0.9},    // [A100], [torch A100 PCIe]
       {"f64", 19.5e12, 0.9}});  // [A100], the tensor cores'; estimate
  NetworkTier nvlink, infiniband;
  nvlink.bandwidth = 300e9;      // [A100]: 600 GB/s both ways
  nvlink.efficiency = 0.78;      // 233 GB/s [nccl-tests 175]
  infiniband.bandwidth = 25e9;   // [DGX A100]: HDR, 200 Gb/s
  infiniband.efficiency = 0.96;  // 192 GB/s over eight ports [nccl 812]
  infiniband.hop = 9.6e-6;       // [NCCL] 2.10
  infiniband.latency = 18e-6;    // [NCCL] 2.10
  machine.tiers = TiersOf(nvlink, infiniband);
  return machine;
}

// An H100, and what the machines after it took over.
Machine H100x8() {
  Machine machine;
  machine.name = "h100x8";
  machine.host = KernelHost::kGpu;
  machine.memory = 80 * kGiB;         // [H100]
  machine.memory_bandwidth = 3350e9;  // [H100]
  machine.memory_efficiency = 0.84;   // [stream H100 NVL]
  machine.op_overhead = 3e-6;         // estimate
  machine.compute = RatesOf(
      // [H100]; n = 8192, 1024, 2048 [torch H100], 0.80 at best [MAMF]
      {"bf16", 989.4e12, 0.8, {{2.1e9, 0.18}, {1.7e10, 0.68}}},
      {{"tf32", 494.7e12, 0.76},  // [H100], [torch H100]
       {"f32", 67e12, 0.77},      // [H100], [torch H100]
       {"f64", 67e12, 0.9}});     // [H100], the tensor cores'; estimate
  NetworkTier nvlink, infiniband;
  nvlink.bandwidth = 450e9;      // [H100]: 900 GB/s both ways
  nvlink.efficiency = 0.82;      // 370 GB/s without sums in the switch [nccl-tests 212]
  infiniband.bandwidth = 50e9;   // [DGX H100]: NDR, 400 Gb/s
  infiniband.efficiency = 0.87;  // 350 GB/s over eight ports [nccl-tests 283]
  infiniband.hop = 14e-6;        // [NCCL] 2.19
  infiniband.latency = 22.4e-6;  // [NCCL] 2.19
  machine.tiers = TiersOf(nvlink, infiniband);
  return machine;
}

// The chip of an H100 with more and faster memory.
Machine H200x8() {
  Machine machine = H100x8();
  machine.name = "h200x8";
  machine.memory = 141 * kGB;         // [H200]
  machine.memory_bandwidth = 4800e9;  // [H200]; its share as of an H100: estimate
  return machine;
}

Machine B200x8() {
  Machine machine = H100x8();
  machine.name = "b200x8";
  machine.memory = 180 * kGB;         // [DGX B200]: 1,440 GB in eight
  machine.memory_bandwidth = 8000e9;  // [DGX B200]; its share as of an H100: estimate
  machine.compute = RatesOf(
      // [HGX B200]; n = 8192, 1024, 2048 [torch B200], 0.78 at best [MAMF]
      {"bf16", 2250e12, 0.63, {{2.1e9, 0.19}, {1.7e10, 0.5}}},
      {{"tf32", 1100e12, 0.63},        // [HGX B200]; estimate
       {"f32", 75e12, 0.77},           // [HGX B200]; as of an H100: estimate
       {"f64", 37e12, 0.9}});          // [HGX B200]; estimate
  machine.tiers[0].bandwidth = 900e9;  // [HGX B200]: 1,800 GB/s both ways
  machine.tiers[0].efficiency = 0.8;  // what NCCL takes: 40.1 GB/s for each of 18 links [nccl 1807]
  return machine;  // InfiniBand is that of an H100: [DGX B200] has ConnectX-7, NDR 400 Gb/s
}

}  // namespace

const std::vector<Machine>& MachinePresets() {
  static const auto* const presets =
      new std::vector<Machine>{CpuThreads(), A100x8(), H100x8(), H200x8(), B200x8()};
  return *presets;
}

absl::StatusOr<Machine> FindMachinePreset(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Machine& machine : MachinePresets()) {
    if (machine.name == name) return machine;
    names.push_back(machine.name);
  }
  return absl::NotFoundError(absl::StrCat("no machine is called `", EscapeBytes(name), "`",
                                          DidYouMean(name, names), "; presets are ",
                                          absl::StrJoin(names, ", ")));
}

}  // namespace mgc
