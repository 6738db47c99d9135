// The memory of one rank class while its instructions are executed for their meaning.
//
// Addresses and sizes are those of the plan, contents are tensors of the shrunk plan: what is
// written at [begin, end) is kept as tiles, one a rank, and *poisons* whatever it overlaps. A read
// finds exactly what was written there, with its view, or zeros of a range that the step zeroes,
// or several values that together fill a vector; anything else is an error.

#ifndef MGC_GRAPH_VERIFY_MEANING_TILE_STORE_H_
#define MGC_GRAPH_VERIFY_MEANING_TILE_STORE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "graph/verify/common/address_map.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

using Tiles = std::vector<ResidueTensor>;  // by rank of the class, ascending

// What lies somewhere: a name for messages (a slot's, `*` standing for the layer), and the view
// under which it was written. Whoever makes one keeps what it points to alive.
struct TileView {
  const std::string* name = nullptr;
  int layer = kNoLayer;
  const TensorType* type = nullptr;
  const Sharding* sharding = nullptr;
};

class TileStore {
 public:
  // `mesh` is the shrunk one.
  TileStore(const Mesh& mesh, int num_ranks) : mesh_(mesh), num_ranks_(num_ranks) {}

  void Zero(Range range) { Put(range, {true, {}, {}}); }
  void Write(Range range, const TileView& view, Tiles tiles) {
    Put(range, {false, view, std::move(tiles)});
  }
  // Nothing may be read there any more.
  void Poison(Range range);

  // The tiles at `range`, read under `view`. The result stays valid until the next call that
  // changes the store. Errors carry meaning_v2 (poison) or meaning_v3 (another view).
  absl::StatusOr<const Tiles*> Read(Range range, const TileView& view);

 private:
  struct Stored {
    bool zero = false;
    TileView view;
    Tiles tiles;
  };

  void Put(Range range, Stored stored);
  bool IsZero(Range range) const;
  // What was written at that range, neither more nor less; or null.
  const Stored* Exactly(Range range) const;
  // Puts together a vector of scalars that lie one after another, written or zero.
  bool Compose(Range range, const TileView& view);
  Tiles* MakeScratch(const TileView& view);
  std::string WhatIsThere(Range range) const;

  const Mesh& mesh_;
  const int num_ranks_;
  AddressMap<Stored> stored_;
  std::deque<Tiles> scratch_;  // zeros and vectors handed out since the last change
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_TILE_STORE_H_
