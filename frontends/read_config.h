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

// The configuration that the keys of `family` give.
ModelConfig ReadConfig(ModelFamily family, ConfigReading& file);

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
