// A comparison in the making: its sides, and what one is held against others.

#ifndef MGC_TOOLS_BENCHMARKS_COMPARISON_BUILDER_H_
#define MGC_TOOLS_BENCHMARKS_COMPARISON_BUILDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/types/tensor_type.h"
#include "passes/config/parallel_config.h"
#include "tools/benchmarks/checkpoint_sides.h"
#include "tools/benchmarks/comparison.h"
#include "tools/benchmarks/comparisons.h"
#include "tools/benchmarks/generation.h"
#include "tools/benchmarks/memory_sides.h"
#include "tools/benchmarks/products.h"

namespace mgc {

// Of a training step.
inline constexpr int64_t kSequences = 4;
inline constexpr int64_t kSequenceLength = 256;
// Of PyTorch's speed, in every layout.
inline constexpr double kBesideTorch = 1.35;

class ComparisonBuilder {
 public:
  explicit ComparisonBuilder(BenchSetting setting) : setting_(std::move(setting)) {}

  int64_t layers() const { return setting_.model.layers; }
  bool has_torch() const { return !setting_.torch.empty(); }
  bool has_transformers() const { return !setting_.transformers.empty(); }
  bool has_mpi() const { return !setting_.mpi.empty(); }

  // Begins one, of steps of so many sequences, of none where there are no tokens; or of texts.
  void Start(absl::string_view name, const std::string& what, int64_t sequences);
  void StartTexts(absl::string_view name, const GenerationCase& generation);

  // Each adds a side and returns its index.
  int Products(ProductsBy by, DType type);
  int Training(absl::string_view layout, const ParallelConfig& parallel);
  // The same with each rank in a process of its own.
  int ProcessTraining(absl::string_view layout, const ParallelConfig& parallel);
  // A layout of torch_step.py, `one` or of two processes; `flags` are further ones of it.
  int Torch(absl::string_view name, DType type, absl::string_view layout,
            const std::vector<std::string>& flags = {});
  int Checkpoint(const std::string& name, CheckpointWork work, const ParallelConfig& parallel);
  int Generation(const GenerationCase& generation, DType type);
  int Transformers(const GenerationCase& generation, DType type);
  int SumsByProcesses(int64_t bytes);
  int SumsByThreads(int64_t bytes);
  int SumsByMpi(int64_t bytes) { return SumsUnderMpi("MPI_Allreduce, two processes", bytes, {}); }
  int SumsByLibrary(int64_t bytes) {
    return SumsUnderMpi("--allreduce mpi, two processes", bytes, {"--library"});
  }
  using MakeInMemory = absl::StatusOr<std::unique_ptr<BenchSide>>(MemoryKind, int workers);
  int In(MemoryKind kind, MakeInMemory* make);
  int Collective(absl::string_view op, DType type);
  int Copies(absl::string_view op, DType type);

  // Of the layers' weights: as many as Collective and Copies have.
  int64_t GradientElements() const;

  // What `sides` are held against: the fastest of `peers`, at `least` of its speed.
  void Expect(std::vector<int> sides, std::vector<int> peers, double least);
  void ExpectMemory(int side, int peer);
  void ExpectBesideTorch(int side, int torch);

  Comparison Take() { return std::move(comparison_); }

 private:
  int SumsUnderMpi(std::string name, int64_t bytes, const std::vector<std::string>& flags);
  int Add(std::string name, std::function<absl::StatusOr<std::unique_ptr<BenchSide>>()> make);

  const BenchSetting setting_;
  Comparison comparison_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_COMPARISON_BUILDER_H_
