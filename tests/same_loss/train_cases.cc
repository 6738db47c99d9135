#include "tests/same_loss/train_cases.h"

#include <utility>

namespace mgc {
namespace {

TrainCase Vocab(TrainCase c, int64_t vocab, int64_t multiple = 1) {
  c.vocab = vocab;
  c.vocab_multiple = multiple;
  return c;
}

TrainCase Kv(TrainCase c, int64_t kv_heads) {
  c.kv_heads = kv_heads;
  return c;
}

TrainCase Layers(TrainCase c, int64_t layers) {
  c.layers = layers;
  return c;
}

TrainCase Layout(TrainCase c, const char* layout) {
  c.parallel.layout.layout = layout;
  return c;
}

TrainCase First(TrainCase c, int64_t layers) {
  c.parallel.layout.decoder_first_layers = layers;
  return c;
}

TrainCase Mbs(TrainCase c, int64_t mbs) {
  c.parallel.micro_batch_size = mbs;
  return c;
}

}  // namespace

TrainCase GptCase(int64_t tp, int64_t pp, int64_t dp) {
  TrainCase c;
  c.preset = "gpt2-tiny";
  c.dp = dp;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.micro_batch_size = 2;
  c.parallel.global_batch_size = kSameLossBatch;
  return c;
}

TrainCase LlamaCase(int64_t tp, int64_t pp, int64_t dp) {
  TrainCase c = GptCase(tp, pp, dp);
  c.preset = "llama-tiny";
  return c;
}

TrainCase WithSequenceParallel(TrainCase c) {
  c.parallel.sequence_parallel = true;
  return c;
}

TrainCase WithZero(TrainCase c, int64_t level, int64_t group) {
  c.parallel.zero = level;
  c.parallel.zero_group = group;
  return c;
}

TrainCase WithNarrowSums(TrainCase c) {
  c.parallel.gradient_sums = DType::kBF16;
  return c;
}

TrainCase WithSplitProducts(TrainCase c, int64_t pieces) {
  c.parallel.split_products = pieces;
  return c;
}

TrainCase WithContextParallel(TrainCase c, int64_t cp) {
  c.parallel.cp = cp;
  return c;
}

TrainCase WithSchedule(TrainCase c, ScheduleKind schedule, int64_t vp) {
  c.parallel.schedule = schedule;
  c.parallel.vp = vp;
  return c;
}

TrainCase WithRecompute(TrainCase c, Recomputation recompute) {
  c.parallel.recompute = std::move(recompute);
  return c;
}

std::vector<TrainCase> SameLossCases() {
  const ScheduleKind gpipe = ScheduleKind::kGpipe;
  const ScheduleKind interleaved = ScheduleKind::kInterleaved;
  const RecomputeKind full = RecomputeKind::kFull;
  const RecomputeKind selective = RecomputeKind::kSelective;
  std::vector<TrainCase> cases = {
      GptCase(2, 1, 1),
      GptCase(4, 1, 1),
      WithSequenceParallel(GptCase(2, 1, 1)),
      WithSequenceParallel(GptCase(4, 1, 1)),
      GptCase(1, 1, 2),
      GptCase(1, 1, 8),
      WithZero(GptCase(1, 1, 2)),
      WithZero(Mbs(GptCase(1, 1, 4), 1)),
      GptCase(1, 2, 1),
      GptCase(1, 4, 1),
      WithSchedule(GptCase(1, 2, 1), gpipe),
      WithSchedule(GptCase(1, 4, 1), gpipe),
      WithSchedule(GptCase(1, 2, 1), interleaved, 2),
      WithRecompute(GptCase(1, 1, 1), full),
      WithRecompute(GptCase(1, 1, 1), selective),
      WithRecompute(GptCase(1, 2, 1), full),
      WithRecompute(WithSequenceParallel(GptCase(2, 2, 1)), full),
      WithRecompute(WithSequenceParallel(GptCase(2, 1, 2)), selective),
      GptCase(2, 2, 2),
      WithSequenceParallel(GptCase(2, 2, 2)),
      WithZero(WithSequenceParallel(GptCase(2, 2, 2))),
      WithZero(GptCase(2, 2, 2)),
      WithSequenceParallel(GptCase(4, 2, 2)),
      WithZero(WithSequenceParallel(WithSchedule(GptCase(2, 2, 2), interleaved, 2))),
      Layout(GptCase(1, 2, 1), "Ettt|tL"),
      Layout(WithSchedule(GptCase(1, 2, 1), interleaved), "E|tt|tt|L"),
      First(GptCase(1, 2, 1), 1),
      Layers(GptCase(1, 4, 1), 5),
      Vocab(GptCase(4, 1, 1), 257, 8),
      Vocab(WithSequenceParallel(GptCase(4, 1, 1)), 261),
      Mbs(GptCase(1, 2, 2), 1),
      Mbs(GptCase(1, 1, 1), 8),
      LlamaCase(2, 1, 1),
      LlamaCase(4, 1, 1),
      WithSequenceParallel(LlamaCase(4, 1, 1)),
      LlamaCase(8, 1, 1),
      WithSequenceParallel(LlamaCase(8, 1, 1)),
      Kv(WithSequenceParallel(LlamaCase(4, 1, 1)), 1),
      Kv(LlamaCase(4, 1, 1), 2),
      LlamaCase(1, 1, 4),
      WithZero(LlamaCase(1, 1, 3)),
      WithZero(WithSequenceParallel(LlamaCase(2, 2, 2))),
      WithSequenceParallel(LlamaCase(2, 2, 2)),
      WithSchedule(LlamaCase(1, 2, 1), interleaved, 2),
      WithSchedule(WithSequenceParallel(LlamaCase(2, 2, 2)), interleaved, 2),
      WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2))), full),
      WithRecompute(LlamaCase(1, 1, 1), full),
      WithZero(WithSequenceParallel(LlamaCase(4, 2, 2))),
      WithSequenceParallel(LlamaCase(8, 2, 1)),
      Layers(WithSchedule(LlamaCase(1, 2, 1), interleaved, 3), 7),
      Vocab(WithSequenceParallel(LlamaCase(8, 1, 1)), 259),
      WithZero(GptCase(1, 1, 2), 2),
      WithZero(LlamaCase(1, 1, 4), 3),
      WithZero(LlamaCase(1, 1, 3), 2),
      WithZero(GptCase(1, 1, 4), 3, 2),
      WithZero(WithSequenceParallel(GptCase(2, 2, 2)), 3),
      WithZero(WithSequenceParallel(WithSchedule(LlamaCase(2, 2, 2), interleaved, 2)), 3),
      WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2)), 3), full),
      WithRecompute(WithZero(GptCase(1, 2, 4), 2, 2), selective),
      WithZero(Layers(GptCase(1, 4, 2), 5), 3),
  };
  for (TrainCase& c : cases) {
    // Data-parallel sizes that do not divide the usual batch take the next that they do.
    const int64_t group = c.dp * c.parallel.micro_batch_size;
    c.parallel.global_batch_size = (kSameLossBatch + group - 1) / group * group;
  }
  return cases;
}

std::vector<TrainCase> ContextParallelCases() {
  const ScheduleKind interleaved = ScheduleKind::kInterleaved;
  const RecomputeKind full = RecomputeKind::kFull;
  const RecomputeKind selective = RecomputeKind::kSelective;
  const auto sp = WithSequenceParallel;
  const auto cp = WithContextParallel;
  return {
      cp(GptCase(1, 1, 1), 2),
      cp(GptCase(1, 1, 1), 4),
      WithZero(cp(LlamaCase(1, 1, 2), 2), 3),
      cp(GptCase(2, 1, 1), 2),
      cp(sp(GptCase(2, 1, 1)), 2),
      cp(sp(GptCase(2, 1, 1)), 4),
      cp(GptCase(1, 1, 2), 2),
      cp(WithZero(GptCase(1, 1, 2)), 2),
      cp(WithZero(GptCase(1, 1, 1)), 4),
      cp(GptCase(1, 2, 1), 2),
      cp(WithZero(sp(GptCase(2, 2, 2))), 2),
      cp(WithSchedule(GptCase(1, 2, 1), interleaved, 2), 2),
      cp(WithRecompute(sp(GptCase(2, 1, 1)), full), 2),
      cp(LlamaCase(1, 1, 1), 2),
      cp(LlamaCase(1, 1, 1), 4),
      cp(LlamaCase(4, 1, 1), 2),
      cp(sp(LlamaCase(2, 1, 1)), 4),
      cp(Kv(LlamaCase(4, 1, 1), 2), 2),
      cp(Kv(sp(LlamaCase(4, 1, 1)), 1), 2),
      cp(WithZero(sp(LlamaCase(2, 2, 2))), 2),
      cp(WithZero(WithSchedule(sp(LlamaCase(2, 2, 1)), interleaved, 2)), 4),
      cp(WithRecompute(LlamaCase(1, 1, 2), selective), 2),
      cp(sp(Kv(LlamaCase(8, 1, 1), 2)), 2),
  };
}

}  // namespace mgc
