// The plans that are damaged: between them they have all features of plans.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MUTATION_CORPUS_H_
#define MGC_TESTS_VERIFY_DAMAGE_MUTATION_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/same_loss/train_plan.h"

namespace mgc {

// Which damage counts.
enum class Where : uint8_t {
  kAnywhere,
  kCallsOfTheMiddle,
  kMiddleLayer,
  kMiddleClass,
  kMiddleChunk
};

struct MutationCase {
  std::string name;  // the dice of its mutants are thrown by it
  TrainCase train;
  Where where = Where::kAnywhere;
};

std::vector<MutationCase> MutationCorpus();

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MUTATION_CORPUS_H_
