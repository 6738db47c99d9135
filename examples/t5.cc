// Writes a T5 as text, for mgc-compile:
//   bazel run //examples:t5 -- --layers 4 --samples pairs.safetensors > t5.mgc
#include "examples/t5_model.h"
#include "examples/write_model.h"

int main(int argc, char** argv) {
  mgc::T5Sizes sizes;
  int64_t batch = 4, source = 24, seq = 16;
  return mgc::WriteModel(argc, argv,
                         {{"layers", &sizes.layers},
                          {"hidden", &sizes.hidden},
                          {"heads", &sizes.heads},
                          {"head-dim", &sizes.head_dim},
                          {"ffn", &sizes.ffn},
                          {"vocab", &sizes.vocab},
                          {"buckets", &sizes.buckets},
                          {"farthest", &sizes.farthest},
                          {"batch", &batch},
                          {"source", &source},
                          {"seq", &seq}},
                         [&] { return mgc::T5Model(sizes, batch, source, seq); });
}
