// For tests of threads: waits for a fact instead of measuring time.

#ifndef MGC_RUNTIME_RUN_TESTING_COMES_H_
#define MGC_RUNTIME_RUN_TESTING_COMES_H_

#include "absl/functional/function_ref.h"

namespace mgc {

// Waits until the fact is there. False after a minute, which only ends a test that has failed.
bool Comes(absl::FunctionRef<bool()> fact);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_COMES_H_
