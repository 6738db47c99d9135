// What the compiler knows of the machines a plan runs on: one device, and the networks that connect
// them. Facts of the data sheet with an efficiency beside each rate, or what was measured
// (`mgc-bench --calibrate`); the cost model and the schedule simulation read nothing else.

#ifndef MGC_GRAPH_TYPES_MACHINE_H_
#define MGC_GRAPH_TYPES_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// What work of one size reaches.
struct EfficiencyPoint {
  double size = 0;          // flops of a product, bytes of a message
  double efficiency = 1.0;  // share of the peak, in (0, 1]

  friend bool operator==(const EfficiencyPoint& a, const EfficiencyPoint& b) {
    return a.size == b.size && a.efficiency == b.efficiency;
  }
};

// The share of the peak that work of a size reaches. Between two points, which ascend by size, it
// goes linearly with the logarithm of the size; below the first it is the first's, above the last
// `large`.
double EfficiencyAt(double size, absl::Span<const EfficiencyPoint> points, double large);

// Rate of matrix products in one element type.
struct ComputeRate {
  std::string dtype;        // `f32`, `bf16`, ...
  double flops = 0;         // multiplications and additions per second, peak
  double efficiency = 1.0;  // share of the peak that a large product reaches, in (0, 1]
  std::vector<EfficiencyPoint> points = {};  // of smaller ones, by flops

  // Flops per second of a product of so many.
  double At(double product_flops) const {
    return flops * EfficiencyAt(product_flops, points, efficiency);
  }

  friend bool operator==(const ComputeRate& a, const ComputeRate& b) {
    return a.dtype == b.dtype && a.flops == b.flops && a.efficiency == b.efficiency &&
           a.points == b.points;
  }
};

// How many times as long an op takes as its flops and bytes say.
struct OpFactor {
  std::string op;
  std::string dtype;  // in which it computes
  double factor = 1.0;

  friend bool operator==(const OpFactor& a, const OpFactor& b) {
    return a.op == b.op && a.dtype == b.dtype && a.factor == b.factor;
  }
};

// A network, and which ranks it connects: those whose rank divided by `ranks`, rounded down, is the
// same, are in one domain. Each rank has a port of its own: a network that is oversubscribed k
// times has a k-th of its ports' bandwidth.
struct NetworkTier {
  std::string name;
  int64_t ranks = 0;        // in one domain; kAnyRanks for a tier without a bound
  double bandwidth = 0;     // bytes per second of one rank in one direction, peak
  double efficiency = 1.0;  // share of it that large messages reach, in (0, 1]
  double latency = 0;       // seconds until the first byte of a message or collective arrives
  double hop = 0;           // seconds that every further step of a collective takes
  std::vector<EfficiencyPoint> points = {};  // of smaller messages, by bytes

  // Bytes per second of a message of so many.
  double At(double message_bytes) const {
    return bandwidth * EfficiencyAt(message_bytes, points, efficiency);
  }

  friend bool operator==(const NetworkTier& a, const NetworkTier& b) {
    return a.name == b.name && a.ranks == b.ranks && a.bandwidth == b.bandwidth &&
           a.efficiency == b.efficiency && a.latency == b.latency && a.hop == b.hop &&
           a.points == b.points;
  }
};
inline constexpr int64_t kAnyRanks = 0;

// What runs kernels: the threads of a processor, each of which has scratch of its own, or a GPU,
// whose kernels run one after the other for a rank.
enum class KernelHost : uint8_t { kCpu, kGpu };

struct Machine {
  std::string name;
  int64_t memory = 0;              // bytes of one device
  double memory_bandwidth = 0;     // bytes per second of one device, peak
  double memory_efficiency = 1.0;  // share of it that a long copy reaches, in (0, 1]
  double op_overhead = 0;          // seconds to start one op
  // 0: each rank has a device of its own. Else a device is one of so many cores, which all ranks
  // share: whichever rank has work keeps all of them busy. Rates are one core's while all work.
  int64_t cores = 0;
  KernelHost host = KernelHost::kCpu;
  std::vector<ComputeRate> compute;
  std::vector<OpFactor> ops;       // by op and type; one that is not listed has 1
  std::vector<NetworkTier> tiers;  // fastest, that is innermost, first

  // What products of this type reach; those of f32, else of the first type listed, when the type is
  // not listed.
  const ComputeRate& RateOf(absl::string_view dtype) const;

  // OpFactor::factor; of a type that is not listed with the op, that of f32.
  double FactorOf(absl::string_view op, absl::string_view dtype) const;

  // Bytes per second that long copies reach.
  double BytesPerSecond() const { return memory_bandwidth * memory_efficiency; }

  // The innermost tier with all of these ranks in one domain; the outermost when none has.
  const NetworkTier& TierOf(absl::Span<const int64_t> ranks) const;

  friend bool operator==(const Machine& a, const Machine& b);
  friend bool operator!=(const Machine& a, const Machine& b) { return !(a == b); }
};

// InvalidArgument unless all rates are positive and finite, efficiencies in (0, 1], times finite
// and not negative, there is a compute rate and a tier, no type or tier is named twice, every
// tier's ranks are a multiple of the tier's inside it, and the last tier has no bound. Labels
// machine_c1 to machine_c6; all violations at once, one a line.
absl::Status CheckMachine(const Machine& machine);

// The machines that ship with mgc (docs/machines.md), with the source of every number beside it in
// machine_presets.cc: `cpu-threads`, `a100x8`, `h100x8`, `h200x8`, `b200x8`.
const std::vector<Machine>& MachinePresets();

// The preset of that name, or NotFound with the names that exist.
absl::StatusOr<Machine> FindMachinePreset(absl::string_view name);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_MACHINE_H_
