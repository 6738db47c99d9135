// A plan spelled without names of values, labels and formals, origins and notes: what a refactoring
// must leave as it is.

#ifndef MGC_TESTS_PLAN_CORPUS_NORMAL_FORM_H_
#define MGC_TESTS_PLAN_CORPUS_NORMAL_FORM_H_

#include <string>

#include "graph/plan/plan.h"

namespace mgc {

// Every number of a plan that decides what runs where: types, shardings, addresses, instructions,
// orders, waits. Two plans of one normal form compute the same.
std::string NormalForm(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TESTS_PLAN_CORPUS_NORMAL_FORM_H_
