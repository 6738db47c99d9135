// What the compiler holds between two passes, as text: for dumps, mgc-opt and text tests.

#ifndef MGC_PASSES_FORM_TEXT_H_
#define MGC_PASSES_FORM_TEXT_H_

#include <string>

#include "passes/pass.h"

namespace mgc {

// Graphs in the text form of graphs (of a step's two the training graph), plans in that of plans.
std::string PrintForm(const PassForm& form);

}  // namespace mgc

#endif  // MGC_PASSES_FORM_TEXT_H_
