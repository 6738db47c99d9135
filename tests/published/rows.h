// Training runs that papers have published: model, layout, and how long a step took or how many
// flops each GPU did in a second.

#ifndef MGC_TESTS_PUBLISHED_ROWS_H_
#define MGC_TESTS_PUBLISHED_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "passes/config/parallel_config.h"

namespace mgc {

// How a paper counts the flops of a step: what its own number of them is, on one scale with what is
// predicted.
enum class FlopsFormula {
  kHardware,  // Narayanan et al. (arXiv 2104.04473), eq. 3: with full recomputation, all scores
  kModel,     // Korthikanti et al. (arXiv 2205.05198), 4.1: without recomputation, all scores
  kCausal,    // 6 for each parameter and token, and of the scores those that are visible
};

struct PublishedRow {
  std::string paper;  // kSc21, ...
  std::string model;  // as the paper calls it
  FlopsFormula formula = FlopsFormula::kHardware;
  std::string machine = "a100x8";
  // Model.
  int64_t layers = 0, hidden = 0, heads = 0;
  int64_t seq = 2048;
  // Layout. `chunks` are the numbers of chunks of a rank that the paper leaves open.
  int64_t tp = 1, pp = 1, dp = 1, cp = 1;
  std::vector<int64_t> chunks = {1};
  int64_t micro_batch = 1, global_batch = 1;
  bool sequence_parallel = false;
  RecomputeKind recompute = RecomputeKind::kFull;
  bool overlap = false;  // whether collectives run beside compute
  // What was measured: one of both.
  double step_seconds = 0;
  double tflops = 0;  // of one GPU in a second
  // Bytes of parameters, gradients and optimizer of one GPU in GiB, where a paper says.
  double state_gib = 0;

  int64_t gpus() const { return tp * pp * dp * cp; }
};

inline constexpr char kSc21[] = "SC'21";         // Table 1 of arXiv 2104.04473
inline constexpr char kSc21Zero[] = "SC'21 T2";  // Table 2, the rows of PTD-P
inline constexpr char kSequence[] = "SP";        // Table 5 and Fig. 1 of arXiv 2205.05198
inline constexpr char kLlama3[] = "Llama 3";     // Table 4 of arXiv 2407.21783
inline constexpr char kMtNlg[] = "MT-NLG";       // 2.4 of arXiv 2201.11990

// All rows, by paper.
std::vector<PublishedRow> PublishedRows();

// Flops of a step by the row's formula.
double FlopsOfStep(const PublishedRow& row);

// What was measured, in TFLOP/s of one GPU by the row's formula.
double MeasuredTflops(const PublishedRow& row);

}  // namespace mgc

#endif  // MGC_TESTS_PUBLISHED_ROWS_H_
