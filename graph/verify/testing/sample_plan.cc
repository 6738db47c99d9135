#include "graph/verify/testing/sample_plan.h"

#include "absl/strings/str_cat.h"
#include "graph/plan/text/plan_text.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr char kHead[] = R"(
plan @sample version 5 {
  batch micro 1 global 6 micro_batches 3 seq 4 vocab 16
  stages (0 0) (1 0)
  predicted 0
}
mesh @m [tp=2, dp=2, pp=2]
machine @small {
  memory 1000000 bandwidth 1e+10 efficiency 1
  overhead 0
  compute f32 1e+10 efficiency 1
  tier memory ranks any bandwidth 1e+10 efficiency 1 latency 0
}
graph @m logical layers=1 (
  data %x: f32[batch=1,seq=4]
) {
  report "x" = %x
}
segment @first.forward transient 0 workspace 0 collectives 0 (transient, output) {
  slot %0 "x": f32[batch=2,seq=4] @m[dp,-] in output at 0 bytes 16
  load %0 {name="weights"} forward
}
segment @layer.forward transient 64 workspace 0 collectives 1
      (transient, input, params, frame, output) {
  slot %0 "x": f32[batch=1,seq=4] @m[-,-] in input at 0 bytes 16
  slot %1 "w": f32[batch=1,seq=4] @m[-,-] in params at 0 bytes 16
  slot %2 "y.part": f32[batch=1,seq=4] @m[-,-]+tp in frame at 0 bytes 16
  slot %3 "y": f32[batch=1,seq=4] @m[-,-] in transient at 0 bytes 16
  slot %4 "z": f32[batch=1,seq=4] @m[-,-] in output at 0 bytes 16
  %2 = gelu(%0) forward
  start 0 %3 = all_reduce(%2) forward
  wait 0 forward
  %4 = mul(%3, %1) forward
}
segment @layer.backward transient 128 workspace 0 collectives 0
      (transient, grad_input, frame, grads, grad_output) {
  slot %0 "dz": f32[batch=1,seq=4] @m[-,-] in grad_input at 0 bytes 16
  slot %1 "y.part": f32[batch=1,seq=4] @m[-,-]+tp in frame at 0 bytes 16
  slot %2 "dw": f32[batch=1,seq=4] @m[-,-]+dp in transient at 64 bytes 16
  slot %3 "w/grad": f32[batch=1,seq=4] @m[-,-]+dp in grads at 0 bytes 16
  slot %4 "w/grad.next": f32[batch=1,seq=4] @m[-,-]+dp in grads at 0 bytes 16
  slot %5 "dx": f32[batch=1,seq=4] @m[-,-] in grad_output at 0 bytes 16
  %2 = mul(%0, %1) backward
  %4 = accumulate(%3, %2) backward
  %5 = gelu(%0) backward
}
segment @first.backward transient 64 workspace 0 collectives 0 (transient, grad_input) {
  slot %0 "dx": f32[batch=1,seq=4] @m[-,-] in grad_input at 0 bytes 16
  slot %1 "d": f32[batch=1,seq=4] @m[-,-] in transient at 0 bytes 16
  %1 = gelu(%0) backward
}
segment @layer.reduce transient 0 workspace 0 collectives 1 (transient, grads) {
  slot %0 "w/grad": f32[batch=1,seq=4] @m[-,-]+dp in grads at 0 bytes 16
  slot %1 "w/grad.sum": f32[batch=1,seq=4] @m[-,-] in grads at 64 bytes 16
  start 0 %1 = all_reduce(%0) update
}
segment @head.forward transient 64 workspace 0 collectives 0 (transient, input) {
  slot %0 "x": f32[batch=1,seq=4] @m[-,-] in input at 0 bytes 16
  slot %1 "loss": f32[batch=1,seq=4] @m[-,-] in transient at 0 bytes 16
  %1 = gelu(%0) forward
}
segment @head.backward transient 0 workspace 0 collectives 0 (transient, input, grad_output) {
  slot %0 "x": f32[batch=1,seq=4] @m[-,-] in input at 0 bytes 16
  slot %1 "dx": f32[batch=1,seq=4] @m[-,-] in grad_output at 0 bytes 16
  %1 = gelu(%0) backward
}
segment @update transient 0 workspace 0 collectives 1 (transient, globals) {
  slot %0 "n": f64[] @m[]+pp in globals at 0 bytes 8
  slot %1 "n.sum": f64[] @m[] in globals at 64 bytes 8
  start 0 %1 = all_reduce(%0) update
  wait 0 update
}
segment @layer.update transient 0 workspace 0 collectives 0 (transient, params, grads) {
  slot %0 "w": f32[batch=1,seq=4] @m[-,-] in params at 0 bytes 16
  slot %1 "w/grad.sum": f32[batch=1,seq=4] @m[-,-] in grads at 64 bytes 16
  slot %2 "w.next": f32[batch=1,seq=4] @m[-,-] in params at 0 bytes 16
  %2 = add(%0, %1) update
}
block @layer params 64 grads 128 states 128 {
  param "layers.*.w": f32[batch=1,seq=4] @m[-,-] state @m[-,-] {init="ones"}
      at 0 gradient "grads" 64 keeps "m" 0 keeps "v" 64
}
)";

constexpr char kClasses[] = R"(
class 0 {
  hold @layer layer 0 params 256 grads 128 states 320
  chunk stage 0 layers 0 1 embedding frame 128 {
    forward @first.forward layer embedding (transient=960, output=frame)
    forward @layer.forward layer 0 (transient=960, input=frame, params=256, frame=frame+64,
      output=output)
    backward @layer.backward layer 0 (transient=960, grad_input=grad_input, frame=frame+64,
      grads=128, grad_output=704)
    backward @first.backward layer embedding (transient=960, grad_input=704)
    last_backward @layer.backward layer 0 (transient=960, grad_input=grad_input, frame=frame+64,
      grads=128, grad_output=704)
    last_backward @first.backward layer embedding (transient=960, grad_input=704)
    last_backward @layer.reduce layer 0 (transient=960, grads=128)
  }
  eval_chunk stage 0 layers 0 1 embedding frame 128 {
    forward @first.forward layer embedding (transient=960, output=frame)
    forward @layer.forward layer 0 (transient=960, input=frame, params=256, frame=frame+64,
      output=output)
  }
  update @update running 0 (transient=960, globals=0)
  update @layer.update layer 0 (transient=960, params=256, grads=128)
  eval_update @update (transient=960, globals=0)
  train {
    compute {
      0F0 frame 448 output 768
      0F1 frame 576 output 832
      0B0 frame 448 grad_input 896 wait 0RECV_B0
      0F2 frame 448 output 768 wait 0SEND_F0
      0B1 frame 576 grad_input 896 wait 0RECV_B1
      0B2 frame 448 grad_input 896 wait 0RECV_B2
      0U0
    }
    transfers {
      0SEND_F0 at 768 bytes 16 peer 1 behind 0 of 0F1
      0SEND_F1 at 832 bytes 16 peer 1 behind 0 of 0B0
      0RECV_B0 at 896 bytes 16 peer 1 behind 0 of 0B0
      0SEND_F2 at 768 bytes 16 peer 1 behind 0 of 0B1
      0RECV_B1 at 896 bytes 16 peer 1 behind 0 of 0B1 after 0B0
      0RECV_B2 at 896 bytes 16 peer 1 behind 0 of 0B2 after 0B1
    }
  }
  eval {
    compute {
      0F0 frame 448 output 768
      0F1 frame 448 output 832
      0F2 frame 448 output 768 wait 0SEND_F0
      0U0
    }
    transfers {
      0SEND_F0 at 768 bytes 16 peer 1 behind 0 of 0F1
      0SEND_F1 at 832 bytes 16 peer 1 behind 0 of 0F2
      0SEND_F2 at 768 bytes 16 peer 1 behind 0 of 0U0
    }
  }
  zero 0 256
  eval_zero 0 128
  globals 128 eval 0
  report "n" 64
  eval_report "n" 64
  memory params 64 grads 128 states 128 copies 0 frames 256 boundaries 256 transient 256 peak 1088
      workspace 0
}
class 1 {
  chunk stage 1 layers 1 0 head frame 0 {
    forward @head.forward layer 1 (transient=320, input=input)
    backward @head.backward layer 1 (transient=320, input=input, grad_output=grad_output)
  }
  eval_chunk stage 1 layers 1 0 head frame 0 {
    forward @head.forward layer 1 (transient=320, input=input)
  }
  update @update running 0 (transient=320, globals=0)
  eval_update @update (transient=320, globals=0)
  train {
    compute {
      1F0 input 128 wait 1RECV_F0
      1B0 input 128 grad_output 256
      1F1 input 192 wait 1RECV_F1
      1B1 input 192 grad_output 256 wait 1SEND_B0
      1F2 input 128 wait 1RECV_F2
      1B2 input 128 grad_output 256 wait 1SEND_B1
      1U0
    }
    transfers {
      1RECV_F0 at 128 bytes 16 peer 0 behind 0 of 1F0
      1RECV_F1 at 192 bytes 16 peer 0 behind 0 of 1F0
      1SEND_B0 at 256 bytes 16 peer 0 behind 0 of 1B0
      1RECV_F2 at 128 bytes 16 peer 0 behind 0 of 1B0 after 1B0
      1SEND_B1 at 256 bytes 16 peer 0 behind 0 of 1B1
      1SEND_B2 at 256 bytes 16 peer 0 behind 0 of 1B2
    }
  }
  eval {
    compute {
      1F0 input 128 wait 1RECV_F0
      1F1 input 192 wait 1RECV_F1
      1F2 input 128 wait 1RECV_F2
      1U0
    }
    transfers {
      1RECV_F0 at 128 bytes 16 peer 0 behind 0 of 1F0
      1RECV_F1 at 192 bytes 16 peer 0 behind 0 of 1F0
      1RECV_F2 at 128 bytes 16 peer 0 behind 0 of 1F0 after 1F0
    }
  }
  zero 0 128
  eval_zero 0 128
  globals 128 eval 0
  report "n" 64
  eval_report "n" 64
  memory params 0 grads 0 states 0 copies 0 frames 0 boundaries 192
    transient 192 peak 384 workspace 0
}
)";

}  // namespace

std::string SamplePlanText() { return absl::StrCat(kHead, kClasses); }

Plan EditedSample(const TextEdits& edits) {
  std::string text = SamplePlanText();
  for (const auto& [from, to] : edits) {
    const size_t at = text.find(from);
    if (at == std::string::npos) {
      ADD_FAILURE() << "the sample has no `" << from << "`";
      return {};
    }
    text.replace(at, from.size(), to);
  }
  absl::StatusOr<Plan> plan = ParsePlan(text, "sample.mgc");
  if (plan.ok()) return *std::move(plan);
  ADD_FAILURE() << plan.status();
  return {};
}

}  // namespace mgc
