// AddRunFlags.

#include "absl/strings/str_cat.h"
#include "tools/cli/instruction_set.h"
#include "tools/cli/run_flags.h"

namespace mgc {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 32;
constexpr double kBelowOne = 1 - 1e-12;

void AddScheduleFlags(Flags* flags, RunFlags* out) {
  flags->Section("Learning rate");
  flags->Real("--lr", "highest learning rate (default 1e-3)", 0, 1e6, &out->lr);
  flags->Real("--min-lr", "lowest learning rate (default 0)", 0, 1e6, &out->min_lr);
  flags->Real("--lr-warmup-init", "rate at which the warm-up starts (default 0)", 0, 1e6,
              &out->lr_warmup_init);
  flags->Integer("--lr-warmup-steps,--lr-warmup-iters", "steps of linear warm-up (default 0)",
                 {0, kMaxSteps}, "F3", &out->lr_warmup_steps);
  flags->Choice("--lr-decay-style", {"constant", "linear", "cosine", "inverse-square-root", "WSD"},
                "how the rate falls (default linear)", &out->lr_decay_style);
  flags->Integer("--lr-decay-steps,--lr-decay-iters",
                 "steps until the lowest rate, warm-up included (default: --steps)", {1, kMaxSteps},
                 "F3", &out->lr_decay_steps);
  flags->Choice("--lr-wsd-decay-style", {"exponential", "linear", "cosine", "minus_sqrt"},
                "how a WSD schedule falls at its end (default exponential)",
                &out->lr_wsd_decay_style);
  flags->Integer("--lr-wsd-decay-steps,--lr-wsd-decay-iters",
                 "steps at the end in which a WSD schedule falls (default: a tenth)",
                 {1, kMaxSteps}, "F3", &out->lr_wsd_decay_steps);
  flags->Section("Optimizer (each takes its own, as mgc-compile --optimizer has chosen)");
  flags->Real("--weight-decay", "not on biases and norm weights (default 0.01)", 0, 1e6,
              &out->weight_decay);
  for (size_t i = 0; i < out->hyper.size(); ++i) {
    const HyperParameter& parameter = HyperParameters()[i];
    flags->Real(absl::StrCat("--", parameter.flag),
                absl::StrCat(parameter.doc, " (default ", parameter.usual, ")"), parameter.least,
                parameter.open ? kBelowOne * parameter.most : parameter.most, &out->hyper[i]);
  }
  flags->Real("--clip-grad", "largest norm of the gradient, 0: any (default 1)", 0, 1e300,
              &out->clip_grad);
}

constexpr double kLargestScale = 1.2676506002282294e30;  // 2^100
constexpr double kLeastScale = 1e-30;

void AddLossScaleFlags(Flags* flags, RunFlags* out) {
  flags->Section("Loss scale (of plans made with --fp16)");
  flags->Real("--loss-scale", "a scale that stays as it is (default: one that follows overflows)",
              kLeastScale, kLargestScale, &out->loss_scale);
  flags->Real("--initial-loss-scale", "the first scale (default 2^32)", kLeastScale, kLargestScale,
              &out->initial_loss_scale);
  flags->Real("--min-loss-scale", "the scale never falls below (default 1)", kLeastScale,
              kLargestScale, &out->min_loss_scale);
  flags->Integer("--loss-scale-window",
                 "steps without an overflow, after which it doubles (default 1000)", {1, kMaxSteps},
                 "F3", &out->loss_scale_window);
  flags->Integer("--hysteresis",
                 "overflows after which it halves; it then halves with each until it has doubled "
                 "(default 2)",
                 {1, kMaxSteps}, "F3", &out->hysteresis);
}

// Those that are given of a scale that changes.
void AddProcessFlags(Flags* flags, RunFlags* out) {
  flags->Section("Processes");
  flags->Integer("--nproc", "processes of this host that share the ranks (default: one)", {1, 4096},
                 "F3", &out->nproc);
  flags->Integer("--ranks-per-process",
                 "ranks of each of several processes (default: as even as can be)",
                 {1, int64_t{1} << 20}, "F3", &out->ranks_per_process);
  flags->Choice("--allreduce", {kAllReduceOrdered, kAllReduceByMpi},
                "who adds between processes: mgc, in the order of ranks, or under mpirun and srun "
                "the MPI library, in its own; losses may then differ in their last bits "
                "(default ordered)",
                &out->allreduce);
  flags->Real("--watchdog-seconds",
              "end with 124 when nothing has come on for so long (default 60, 0: never)", 0, 1e9,
              &out->watchdog_seconds);
  flags->Text(
      "--run-dir", "DIR",
      "where the run leaves what its ranks are at, for mgc-status, and logs of all processes but "
      "the first",
      &out->run_dir);
  flags->Text("--inject", "FAULT:POINT:RANK",
              "for tests: a rank fails (kill, stop, throw, loop, slow, exit) at a point (start, "
              "forward, backward, collective, transfer, update, end)",
              &out->inject);
  flags->Switch("--stop-on-nonfinite",
                "end with 1 at the first loss or gradient norm that is not finite (the default)",
                &out->stop_on_nonfinite);
  flags->Switch("--no-stop-on-nonfinite", "go on behind it", &out->no_stop_on_nonfinite);
  flags->Choice("--check-finite", {"loss", "grads", "all"},
                "also end at the first tensor of backward, or of all, that is not finite, and say "
                "what it was made from (default loss)",
                &out->check_finite);
}

void AddCheckpointFlags(Flags* flags, RunFlags* out) {
  flags->Section("Checkpoints");
  flags->Text(
      "--save", "DIR",
      "where checkpoints are saved: at the end, when the run is asked to stop (it then exits "
      "with 75), and when the flags below say; a run that finds one there goes on from it",
      &out->save);
  flags->Integer("--save-interval", "steps between checkpoints", {1, kMaxSteps}, "F3",
                 &out->save_interval);
  flags->Real("--save-seconds", "save behind the first step that ends so long after the last save",
              1e-3, 1e9, &out->save_seconds);
  flags->Integer("--keep", "checkpoints that stay, the last ones (default: all)", {1, kMaxSteps},
                 "F3", &out->keep);
  flags->Switch("--wait-for-saves",
                "compute nothing while a checkpoint is written (default: the next step, up to its "
                "update)",
                &out->wait_for_saves);
  flags->Switch("--copy-for-saves",
                "copy what is saved first, where there is memory for it, and write the copy while "
                "steps go on: no update waits",
                &out->copy_for_saves);
  flags->Text("--load", "DIR", "a folder of checkpoints to go on from, in place of --save's",
              &out->load);
  flags->Text("--init", "DIR",
              "a model directory of safetensors files to begin with, where the run goes on from no "
              "checkpoint (default: random numbers of --seed)",
              &out->init);
  flags->Text("--init-adapter", "DIR",
              "with --init, an adapter of peft's for a plan of --lora-rank (default: one that "
              "changes nothing yet)",
              &out->init_adapter);
  flags->Text("--resume", "latest|STEP|none",
              "the checkpoint to go on from (default latest: the last one that is whole)",
              &out->resume);
}

void AddResultFlags(Flags* flags, RunFlags* out) {
  flags->Section("Results");
  flags->Switch("--json", "one JSON object a step and an evaluation on stdout, and nothing else",
                &out->json);
  flags->Text(
      "--metrics", "FILE",
      "the same objects as a file: a run that goes on from a checkpoint goes on in it; that "
      "of another run is kept as FILE.1, FILE.2, ...",
      &out->metrics);
  flags->Text("--tensorboard", "DIR", "a folder of event files for TensorBoard", &out->tensorboard);
  flags->Text("--openmetrics", "FILE",
              "what the run is at, for Prometheus: replaced when steps end, once a second at most",
              &out->open_metrics);
  flags->Text("--trace", "FILE",
              "a timeline of some steps for Perfetto, measured beside predicted; compressed where "
              "the name ends in .gz",
              &out->trace);
  flags->Integer("--trace-steps", "of so many steps and evaluations (default 3)", {1, kMaxSteps},
                 "F3", &out->trace_steps);
  flags->Integer("--trace-from", "from this step on (default 10; of a shorter run its last ones)",
                 {1, kMaxSteps}, "F3", &out->trace_from);
  flags->Text("--dump-grads", "FILE", "gradients of the first step before clipping, as safetensors",
              &out->dump_grads);
  flags->Text("--dump-params", "FILE", "parameters at the end, as safetensors", &out->dump_params);
}

void AddEvaluationFlags(Flags* flags, RunFlags* out) {
  flags->Section("Evaluation");
  flags->Switch("--eval-only",
                "evaluate once, a checkpoint of --load or the weights of --init, and train nothing",
                &out->eval_only);
  flags->Switch(
      "--by-document",
      "with --eval-only, each document of the text by itself and whole; --eod says what ends "
      "one",
      &out->by_document);
  flags->Integer("--eval-interval", "steps between evaluations (default: none)", {1, kMaxSteps},
                 "F3", &out->eval_interval);
  flags->Integer("--eval-steps,--eval-iters",
                 "global batches an evaluation takes (default: all of the data)", {1, kMaxSteps},
                 "F3", &out->eval_steps);
  AddEvalDataFlag(flags, &out->data);
  flags->Texts("--eval-inputs", "NAME=FILE", "the same for a data input, as --inputs says it",
               &out->eval_inputs);
  flags->Integer("--eval-tail-samples", "how many samples to hold back instead", {1, kMaxSteps},
                 "F3", &out->eval_tail_samples);
}

}  // namespace

void AddRunFlags(Flags* flags, RunFlags* out) {
  flags->Arguments(1, 1, &out->plans);
  flags->Section("Run");
  AddDataFlag(flags, &out->data);
  AddDataOrderFlags(flags, &out->data);
  flags->Texts("--inputs", "NAME=FILE",
               "a data input of the model: samples along the first dim of FILE.npy, or of a tensor "
               "NAME in FILE.safetensors (of another name: FILE.safetensors:TENSOR)",
               &out->inputs);
  flags->Integer("--steps,--train-iters", "steps to train, those before a checkpoint included",
                 {1, kMaxSteps}, "F3", &out->steps);
  flags->Text("--step-batch-size-schedule", "TOKENS:SAMPLES...",
              "how many samples a step takes behind so many tokens, as \"0:256 10B:512\": whole "
              "micro-batches of all data-parallel ranks, up to the plan's global batch (default: "
              "that one throughout)",
              &out->step_sizes);
  flags->Integer("--exit-interval",
                 "stop as on a signal behind each step that this divides: with --save after a "
                 "checkpoint, with 75",
                 {1, kMaxSteps}, "F3", &out->exit_interval);
  flags->Real("--exit-duration",
              "stop likewise behind the first step that ends so many seconds after the run began",
              1e-3, 1e9, &out->exit_seconds);
  flags->Integer("--seed", "of initialization and dropout (default 1234)", {0, int64_t{1} << 62},
                 "F3", &out->seed);
  flags->Integer(
      "--workers",
      "threads that run the ranks (default: one for each processor this process may use)",
      {1, 4096}, "F3", &out->workers);
  AddInstructionSetFlag(flags, &out->instruction_set);
  flags->Choice("--device", {"cpu", "cuda"},
                "what the ranks run on: this machine's processors, or its GPUs, which they share "
                "where they are more (default cpu)",
                &out->device);
  flags->Integer("--gpus", "GPUs of this machine that are used (default: all, or one a rank)",
                 {1, 1024}, "F3", &out->gpus);
  flags->Switch("--no-cuda-graphs", "on a GPU: issue each step anew instead of capturing it once",
                &out->no_cuda_graphs);
  flags->Switch("--tf32",
                "on a GPU: products of f32 round their operands to TF32 (10 bits of fraction), "
                "which is faster and less exact",
                &out->tf32);
  flags->Switch("--check-kernels",
                "on a GPU: wait behind each kernel, so that an error names its instruction",
                &out->check_kernels);
  flags->Switch("--check",
                "run nothing: find all that the ranks need, without proof, data and memory for "
                "them, and say what it comes to",
                &out->check);
  flags->Integer("--rank", "to check that one alone, as of a run with one rank a process",
                 {0, kMaxWorldSize - 1}, "F3", &out->rank);
  AddProcessFlags(flags, out);
  AddCheckpointFlags(flags, out);
  AddResultFlags(flags, out);
  AddScheduleFlags(flags, out);
  AddLossScaleFlags(flags, out);
  AddEvaluationFlags(flags, out);
}

}  // namespace mgc
