// What backward computes again instead of reading what forward kept: nothing, the core of
// attention, or whole layers (passes/graph/recompute.h); of all layers alike, or layer by layer.
//
//   full                    of every layer
//   full*2,none*4           of six layers the first two are computed again
//   selective,full,none*3   a count may be left out: one
//   (full*2,none)*64        the same of every three layers, 64 times; groups do not nest
//
// Megatron's `--recompute-method block` is a list of this kind, once for every stage.

#ifndef MGC_PASSES_CONFIG_RECOMPUTATION_H_
#define MGC_PASSES_CONFIG_RECOMPUTATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

enum class RecomputeKind { kNone, kSelective, kFull };

// `none`, `selective`, `full`; nothing for other text.
std::optional<RecomputeKind> ParseRecomputeKind(absl::string_view text);
absl::string_view ToString(RecomputeKind kind);

class Recomputation {
 public:
  // Of all layers, and of what lies outside of them. Implicit: most are of this kind.
  Recomputation(RecomputeKind all = RecomputeKind::kNone) : all_(all) {}  // NOLINT
  // By layer; outside of them nothing is computed again.
  explicit Recomputation(std::vector<RecomputeKind> by_layer) : by_layer_(std::move(by_layer)) {}

  RecomputeKind Of(int64_t layer) const;
  bool Has(RecomputeKind kind) const;
  bool Any() const { return Has(RecomputeKind::kSelective) || Has(RecomputeKind::kFull); }
  // Empty where it is said of all layers alike.
  const std::vector<RecomputeKind>& by_layer() const { return by_layer_; }

  friend bool operator==(const Recomputation& a, const Recomputation& b) {
    return a.all_ == b.all_ && a.by_layer_ == b.by_layer_;
  }
  friend bool operator!=(const Recomputation& a, const Recomputation& b) { return !(a == b); }

 private:
  RecomputeKind all_ = RecomputeKind::kNone;
  std::vector<RecomputeKind> by_layer_;
};

// By layer, or of all alike where all kinds are the same.
Recomputation SimplestOf(const std::vector<RecomputeKind>& by_layer);

// InvalidArgument for other text than the above, or for more than kMaxPipelineSize layers
// (passes/config/place_layers.h); its message says what is wrong, not where the text came from.
absl::StatusOr<Recomputation> ParseRecomputation(absl::string_view text);
// What takes turns is a group: of up to 8 items, where that makes the text shorter.
std::string ToString(const Recomputation& recomputation);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_RECOMPUTATION_H_
