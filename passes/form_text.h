// What the compiler holds between two passes, as text: for dumps, mgc-opt and text tests.
//
//   staged mesh @m [tp=2, pp=2]
//   segment ..., block ...          as in the text of a plan (graph/plan/text/plan_text.h)
//   class 0 {
//     hold @layer layer 0
//     train {
//       chunk stage 0 layers 0 1 embedding frame 128 {
//         forward @layer.forward layer 0 (transient, params, frame, input, output=frame+64)
//       }
//       update @layer.update layer 0 (transient, params+64, grads)
//       globals 192 zeroed 128
//       scalar "lr" 128
//     }
//     eval { ... }
//   }
//   schedule 0F0 0F1 0B0 0B1          one line per class, before order
//   order 0 slots 2 {                 after it
//     train {
//       0F0 output 0                  actions, with slots of the class' boundary pool
//       0SEND_F0 slot 0 bytes 64 peer 1 behind 0 of 0F0 after 0F0
//     }
//     eval { ... }
//   }
//
// An address is a formal, which names a region, or a place the action brings; `+` bytes behind it.

#ifndef MGC_PASSES_FORM_TEXT_H_
#define MGC_PASSES_FORM_TEXT_H_

#include <string>

#include "passes/pass.h"

namespace mgc {

// Deterministic. Graphs in the text form of graphs (of a step's two the training graph), a finished
// plan in that of plans.
std::string PrintForm(const PassForm& form);

}  // namespace mgc

#endif  // MGC_PASSES_FORM_TEXT_H_
