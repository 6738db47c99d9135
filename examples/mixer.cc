// Writes an MLP-mixer as text, for mgc-compile:
//   bazel run //examples:mixer -- --patches 64 --samples images.safetensors > mixer.mgc
#include "examples/mixer_model.h"
#include "examples/write_model.h"

int main(int argc, char** argv) {
  mgc::MixerSizes sizes;
  int64_t batch = 4;
  return mgc::WriteModel(argc, argv,
                         {{"layers", &sizes.layers},
                          {"patches", &sizes.patches},
                          {"pixels", &sizes.pixels},
                          {"hidden", &sizes.hidden},
                          {"tokens-ffn", &sizes.tokens_ffn},
                          {"ffn", &sizes.ffn},
                          {"labels", &sizes.labels},
                          {"batch", &batch}},
                         [&] { return mgc::MixerModel(sizes, batch); });
}
