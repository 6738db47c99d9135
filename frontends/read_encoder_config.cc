// The keys of bert and vit.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontends/read_config.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

// What both have.
ModelConfig ReadEncoder(ModelFamily family, double dropout_if_absent, JsonObjectReader* reader) {
  ModelConfig c;
  c.family = family;
  c.layers = reader->Integer("num_hidden_layers", kLayersRange);
  c.hidden = reader->Integer("hidden_size", kSizeRange);
  c.heads = reader->Integer("num_attention_heads", kHeadsRange);
  c.kv_heads = c.heads;
  c.head_dim = HeadDimFromHidden(reader, "hidden_size", "num_attention_heads", c);
  c.ffn = reader->Integer("intermediate_size", kSizeRange);
  c.hidden_dropout = reader->Number("hidden_dropout_prob", kProbability, dropout_if_absent);
  c.embedding_dropout = c.hidden_dropout;
  c.attention_dropout =
      reader->Number("attention_probs_dropout_prob", kProbability, dropout_if_absent);
  c.norm_epsilon = reader->Number("layer_norm_eps", kEpsilon, 1e-12);
  c.tanh_gelu =
      reader->Choice("hidden_act", {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}, 0) != 0;
  return c;
}

// One number for a square, or [height, width].
void ReadImageSize(JsonObjectReader* reader, ImageSizes* image) {
  constexpr int64_t kMostPixels = 1 << 14;  // to a side
  constexpr absl::string_view kKey = "image_size";
  const JsonValue* value = reader->TakeUnlessNull(kKey);
  if (value == nullptr || value->kind != JsonValue::Kind::kArray) {
    image->height = image->width = reader->Integer(kKey, {1, kMostPixels}, 224);
    return;
  }
  const auto is_size = [](const JsonValue& item) {
    return item.kind == JsonValue::Kind::kInteger && item.integer >= 1 &&
           item.integer <= kMostPixels;
  };
  if (value->items.size() == 2 && is_size(value->items[0]) && is_size(value->items[1])) {
    image->height = value->items[0].integer;
    image->width = value->items[1].integer;
    return;
  }
  reader->Problem(
      kKey,
      absl::StrCat("image_size must be a size, or height and width, each from 1 to ", kMostPixels),
      "J3");
}

void ReadImage(JsonObjectReader* reader, ModelConfig* c) {
  ImageSizes& image = c->image;
  ReadImageSize(reader, &image);
  image.patch = reader->Integer("patch_size", {1, 1 << 10}, 16);
  image.channels = reader->Integer("num_channels", {1, 1 << 10}, 3);
  const bool read = !reader->Failed("image_size") && !reader->Failed("patch_size");
  if (read && (image.height % image.patch != 0 || image.width % image.patch != 0)) {
    reader->Problem("patch_size",
                    absl::StrCat("an image of ", image.height, " x ", image.width,
                                 " is not covered by squares of ", image.patch),
                    "C7");
  }
  c->max_positions = std::max<int64_t>(PatchesOf(image), 1) + 1;
  c->seq_length = c->max_positions;
}

// As many as are named, unless their number is given.
int64_t ReadLabels(JsonObjectReader* reader) {
  const JsonValue* names = reader->TakeUnlessNull("id2label");
  const bool named = names != nullptr && !names->members.empty();
  const int64_t count = named ? static_cast<int64_t>(names->members.size()) : 2;
  return reader->Integer("num_labels", kSizeRange, count);
}

}  // namespace

ModelConfig ReadBert(JsonObjectReader* reader) {
  ModelConfig c = ReadEncoder(ModelFamily::kBert, 0.1, reader);
  c.segments = reader->Integer("type_vocab_size", kSizeRange, 2);
  reader->Choice("position_embedding_type", {"absolute"}, 0);
  reader->RequireBool("is_decoder", false);
  reader->RequireBool("add_cross_attention", false);
  ReadCommon(reader, "max_position_embeddings", /*tied_if_absent=*/true, &c);
  return c;
}

ModelConfig ReadVit(JsonObjectReader* reader) {
  ModelConfig c = ReadEncoder(ModelFamily::kVit, 0, reader);
  ReadImage(reader, &c);
  c.vocab = ReadLabels(reader);
  ReadInitializer(reader, &c);
  reader->RequireBool("qkv_bias", true);
  if (reader->TakeUnlessNull("problem_type") != nullptr) {
    reader->Choice("problem_type", {"single_label_classification"}, 0);
  }
  return c;
}

}  // namespace mgc
