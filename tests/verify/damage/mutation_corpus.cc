#include "tests/verify/damage/mutation_corpus.h"

#include <utility>

namespace mgc {
namespace {

struct Ranks {
  int64_t tp = 1;
  int64_t pp = 1;
  int64_t dp = 1;
};

// `preset` on these ranks, micro-batches of one sample.
MutationCase On(Ranks ranks, const char* preset, int64_t micro_batches, std::string name) {
  MutationCase made;
  made.name = std::move(name);
  made.train.preset = preset;
  made.train.dp = ranks.dp;
  made.train.parallel.tp = ranks.tp;
  made.train.parallel.pp = ranks.pp;
  made.train.parallel.micro_batch_size = 1;
  made.train.parallel.global_batch_size = ranks.dp * micro_batches;
  return made;
}

MutationCase Gpt(Ranks ranks, int64_t micro_batches, std::string name) {
  return On(ranks, "gpt2-tiny", micro_batches, std::move(name));
}

MutationCase Llama(Ranks ranks, int64_t micro_batches, std::string name) {
  return On(ranks, "llama-tiny", micro_batches, std::move(name));
}

// The case with one thing changed.

MutationCase WithSequenceParallel(MutationCase made) {
  made.train.parallel.sequence_parallel = true;
  return made;
}

MutationCase WithContextParallel(MutationCase made) {
  made.train.parallel.cp = 2;
  return made;
}

MutationCase WithZero(MutationCase made) {
  made.train.parallel.zero = 1;
  return made;
}

MutationCase WithGpipe(MutationCase made) {
  made.train.parallel.schedule = ScheduleKind::kGpipe;
  return made;
}

// Two chunks a rank.
MutationCase Interleaved(MutationCase made) {
  made.train.parallel.schedule = ScheduleKind::kInterleaved;
  made.train.parallel.vp = 2;
  return made;
}

MutationCase WithRecompute(MutationCase made, RecomputeKind recompute) {
  made.train.parallel.recompute = recompute;
  return made;
}

// A vocabulary that no axis divides, in the file padded to a multiple.
MutationCase WithVocabulary(MutationCase made, int64_t entries, int64_t multiple = 1) {
  made.train.vocab = entries;
  made.train.vocab_multiple = multiple;
  return made;
}

// Rotary frequencies as in Llama 3.1.
MutationCase Stretched(MutationCase made) {
  made.train.stretched = true;
  return made;
}

MutationCase WithKvHeads(MutationCase made, int64_t kv_heads) {
  made.train.kv_heads = kv_heads;
  return made;
}

// As many key heads as heads.
MutationCase WithHeads(MutationCase made, int64_t heads, int64_t head_dim) {
  made.train.heads = made.train.kv_heads = heads;
  made.train.head_dim = head_dim;
  return made;
}

MutationCase WithLayers(MutationCase made, int64_t layers) {
  made.train.layers = layers;
  return made;
}

// Layers take turns with two sets of parameters (tests/same_loss/shared_layers.h).
MutationCase SharingInTurns(MutationCase made) {
  made.train.shared = "turns";
  return made;
}

MutationCase Only(Where where, const char* name, MutationCase made) {
  made.where = where;
  made.name = name;
  return made;
}

}  // namespace

std::vector<MutationCase> MutationCorpus() {
  constexpr RecomputeKind kSelective = RecomputeKind::kSelective;
  constexpr RecomputeKind kFull = RecomputeKind::kFull;
  const MutationCase eight_layers =
      WithLayers(WithZero(WithSequenceParallel(Llama({2, 1, 2}, 2, "eight_layers"))), 8);
  const MutationCase six_stages = WithLayers(WithZero(Llama({1, 6, 2}, 8, "six_stages")), 6);
  const MutationCase twelve_stages =
      WithLayers(Interleaved(Llama({1, 6, 1}, 7, "twelve_stages")), 12);
  MutationCase five_chunks =
      WithLayers(WithZero(Interleaved(Llama({1, 2, 2}, 2, "five_chunks"))), 10);
  five_chunks.train.parallel.vp = 5;
  return {
      Gpt({1, 1, 1}, 3, "one_rank"),
      Gpt({2, 1, 1}, 2, "tp2"),
      WithSequenceParallel(Llama({4, 1, 1}, 2, "tp4_sp")),
      WithVocabulary(WithKvHeads(Llama({4, 1, 1}, 2, "tp4_shared_kv"), 2), 259),
      WithZero(Gpt({1, 1, 2}, 3, "dp2_zero")),
      Stretched(Llama({1, 1, 2}, 2, "dp2")),
      Gpt({1, 2, 1}, 5, "pp2_tied"),
      Stretched(WithGpipe(Llama({1, 4, 1}, 6, "pp4_gpipe"))),
      WithRecompute(Gpt({1, 2, 1}, 4, "pp2_full"), kFull),
      Stretched(Interleaved(Llama({1, 2, 1}, 6, "pp2_vp2"))),
      WithZero(WithSequenceParallel(Gpt({2, 2, 2}, 4, "tp2_pp2_dp2"))),
      WithVocabulary(
          WithRecompute(WithSequenceParallel(Gpt({2, 2, 1}, 4, "tp2_pp2_selective")), kSelective),
          261, 4),
      WithRecompute(
          WithZero(WithSequenceParallel(Interleaved(Llama({2, 2, 2}, 6, "tp2_pp2_vp2_dp2")))),
          kFull),
      Stretched(WithHeads(Llama({1, 1, 1}, 2, "small_heads"), 8, 2)),
      WithContextParallel(WithSequenceParallel(Llama({2, 1, 1}, 2, "cp2_tp2"))),
      WithContextParallel(WithZero(Llama({1, 1, 2}, 2, "cp2_dp2_zero"))),
      eight_layers,
      WithLayers(SharingInTurns(Gpt({1, 4, 1}, 5, "pp4_shared")), 6),
      Only(Where::kCallsOfTheMiddle, "middle_calls", eight_layers),
      Only(Where::kMiddleLayer, "middle_layer", eight_layers),
      Only(Where::kMiddleClass, "middle_class", six_stages),
      Only(Where::kMiddleClass, "middle_class_vp2", twelve_stages),
      Only(Where::kMiddleChunk, "middle_chunk", five_chunks),
  };
}

}  // namespace mgc
