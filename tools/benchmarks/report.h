// What comparisons found, as text and as JSON.

#ifndef MGC_TOOLS_BENCHMARKS_REPORT_H_
#define MGC_TOOLS_BENCHMARKS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/benchmarks/comparison.h"

namespace mgc {

struct BenchReport {
  std::string model;
  int64_t layers = 0;
  int workers = 0;
  std::string instructions;  // the vector instructions of our kernels: `AVX-512 with bf16`
  std::vector<ComparisonResult> comparisons;
};

std::string ReportText(const BenchReport& report);
std::string ReportJson(const BenchReport& report);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_REPORT_H_
