// A small Llama on tp 2 and dp 2, of any number of layers and stages.

#ifndef MGC_TESTS_VERIFY_LLAMA_CASE_H_
#define MGC_TESTS_VERIFY_LLAMA_CASE_H_

#include <cstdint>

#include "tests/same_loss/train_plan.h"

namespace mgc {

inline TrainCase CaseOf(int64_t layers, int64_t pp) {
  TrainCase c;
  c.preset = "llama-tiny";
  c.layers = layers;
  c.dp = 2;
  c.parallel.tp = 2;
  c.parallel.pp = pp;
  c.parallel.sequence_parallel = true;
  c.parallel.zero = 1;
  c.parallel.micro_batch_size = 1;
  c.parallel.global_batch_size = 8;
  return c;
}

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_LLAMA_CASE_H_
