// Reading a family's keys, for ParseModelConfig only. Each function asks the reader for the keys it
// knows; what nobody asked for is an error there.

#ifndef MGC_FRONTENDS_READ_CONFIG_H_
#define MGC_FRONTENDS_READ_CONFIG_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "frontends/model_config.h"
#include "graph/base/diagnostic.h"
#include "graph/base/json_reader.h"

namespace mgc {

// One file being read.
struct ConfigReading {
  JsonObjectReader& reader;
  FileDiagnostics& problems;
  std::vector<std::string>& differences;  // between keys that say the same; "line:col: what"
};

// Limits far above any model, so that products of a few sizes stay in range.
inline constexpr IntegerRange kLayersRange = {1, kMaxModelLayers};
inline constexpr IntegerRange kHeadsRange = {1, 1 << 16};
inline constexpr IntegerRange kSizeRange = {1, 1 << 24};
inline constexpr NumberRange kProbability = {0, 1, true, false};
inline constexpr NumberRange kEpsilon = {0, 1, false, true};

// The configuration that the keys of `family` give.
ModelConfig ReadConfig(ModelFamily family, ConfigReading& file);

// The families that read no text from left to right (read_encoder_config.cc).
ModelConfig ReadBert(JsonObjectReader* reader);
ModelConfig ReadVit(JsonObjectReader* reader);

// The keys of all families with words.
void ReadCommon(JsonObjectReader* reader, absl::string_view positions_key, bool tied_if_absent,
                ModelConfig* c);
// The one of all families.
void ReadInitializer(JsonObjectReader* reader, ModelConfig* c);
// The size of a head where the file does not give it.
int64_t HeadDimFromHidden(JsonObjectReader* reader, absl::string_view hidden_key,
                          absl::string_view heads_key, const ModelConfig& c);

// The keys of `family` that change nothing here.
absl::Span<const absl::string_view> HarmlessKeys(ModelFamily family);

// What a family calls RoPE's numbers in the older dialect.
struct RopeKeys {
  absl::string_view theta = "rope_theta";
  absl::string_view share = "";  // of a head's elements that turn; empty: always all
  double share_if_absent = 1;
};

// RoPE in the older dialect (its theta and rope_scaling) or the newer (rope_parameters), which
// wins.
void ReadRope(const RopeKeys& keys, ConfigReading& file, ModelConfig* c);

}  // namespace mgc

#endif  // MGC_FRONTENDS_READ_CONFIG_H_
