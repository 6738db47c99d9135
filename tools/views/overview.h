// What a plan comes to, as far as one picture can show it: which ranks hold what, what they send to
// each other, how much they need.

#ifndef MGC_TOOLS_VIEWS_OVERVIEW_H_
#define MGC_TOOLS_VIEWS_OVERVIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// Chunks of one class that hold as much of the same.
struct OverviewChunk {
  std::vector<int64_t> stages;
  std::vector<int64_t> layers;  // of all of them
  bool embedding = false;
  bool head = false;
};
// `stage 3: layers 36-47`, `stages 1-113 by 16: layers 0-112 by 16`.
std::string ToString(const OverviewChunk& chunk);

// What the collectives of a group, `tp`, come to on one rank in a step.
struct OverviewExchange {
  std::string group;
  int64_t count = 0;
  int64_t wire_bytes = 0;  // what the rank sends
};

// A rank class, or several that are alike.
struct OverviewClass {
  std::vector<int64_t> coordinates;  // along pp, one after the other
  int64_t ranks = 0;                 // in each
  std::vector<OverviewChunk> chunks;
  std::vector<OverviewExchange> exchanges;
  int64_t lowest_peak = 0;  // of the classes, in bytes of a rank
  int64_t highest_peak = 0;
};

// What a micro-batch carries from class to class: activations, or their gradients.
struct OverviewLink {
  size_t from = 0;  // index into Overview::classes
  size_t to = 0;
  bool forward = true;
  int64_t bytes = 0;      // of one rank and one micro-batch, the most where stages differ
  int64_t transfers = 0;  // of one rank in a step, over all stages between the two
};

struct Overview {
  std::vector<OverviewClass> classes;
  std::vector<OverviewLink>
      links;  // within one entry of `classes` too, where it stands for several
};

// With more than `most` classes, neighbours that hold as many stages and layers and send as much
// are one.
Overview OverviewOf(const Plan& plan, size_t most);

// The ranks of a class as a grid: along the fastest axis of more than one rank across, along all
// others down.
struct RankGrid {
  int64_t columns = 1;
  int64_t rows = 1;
  std::string text;  // `tp 8 across, dp 16 down`; empty for one rank
};
RankGrid GridOf(const Plan& plan);

// `960.8 GiB sent over tp in 11712 collectives`
std::string ToString(const OverviewExchange& exchange);

// `96 x 12.0 MiB`: transfers of a step.
std::string ToString(const OverviewLink& link);

// `peak 60.6 GiB`, `peak 35.9 GiB to 167.0 GiB`.
std::string PeakText(const OverviewClass& one);

// What a picture of the plan is called: its model as it was asked for.
std::string TitleOf(const Plan& plan);

// The step in lines: ranks and mesh; batch and micro-batches; parameters, predicted step, peak.
std::vector<std::string> StepFacts(const Plan& plan);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_OVERVIEW_H_
