#include "tools/views/overview.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/units.h"
#include "graph/plan/plan_refs.h"
#include "tools/views/comm.h"
#include "tools/views/format.h"
#include "tools/views/memory.h"
#include "tools/views/show.h"

namespace mgc {
namespace {

std::vector<OverviewChunk> ChunksOf(const PlanClass& plan_class) {
  std::vector<OverviewChunk> chunks;
  int num_layers = -1;  // of each chunk of the last entry
  for (const Chunk& chunk : plan_class.chunks) {
    const bool alike = !chunks.empty() && chunk.num_layers == num_layers &&
                       chunk.has_embedding == chunks.back().embedding &&
                       chunk.has_head == chunks.back().head;
    if (!alike) chunks.push_back({{}, {}, chunk.has_embedding, chunk.has_head});
    num_layers = chunk.num_layers;
    chunks.back().stages.push_back(chunk.stage);
    for (int i = 0; i < chunk.num_layers; ++i) {
      chunks.back().layers.push_back(chunk.first_layer + i);
    }
  }
  return chunks;
}

std::vector<OverviewExchange> ExchangesOf(const Plan& plan, const PlanClass& plan_class,
                                          const std::vector<CommEntry>& entries) {
  std::vector<OverviewExchange> exchanges;
  for (const CommEntry& entry : entries) {
    const auto& place = plan.stages[static_cast<size_t>(entry.stage)];
    if (place.rank_class != plan_class.coordinate || IsTransfer(entry)) continue;
    auto exchange = std::find_if(exchanges.begin(), exchanges.end(),
                                 [&](const OverviewExchange& e) { return e.group == entry.group; });
    if (exchange == exchanges.end()) {
      exchange = exchanges.insert(exchanges.end(), {entry.group, 0, 0});
    }
    const int64_t times = entry.count * TimesInStep(plan, entry);
    exchange->count += times;
    exchange->wire_bytes += times * entry.wire_bytes;
  }
  return exchanges;
}

// Whether classes hold as many stages and layers and send as much.
bool AreAlike(const OverviewClass& a, const OverviewClass& b) {
  const auto chunks = [](const OverviewChunk& x, const OverviewChunk& y) {
    return x.stages.size() == y.stages.size() && x.layers.size() == y.layers.size() &&
           x.embedding == y.embedding && x.head == y.head;
  };
  const auto exchanges = [](const OverviewExchange& x, const OverviewExchange& y) {
    return x.group == y.group && x.count == y.count && x.wire_bytes == y.wire_bytes;
  };
  return std::equal(a.chunks.begin(), a.chunks.end(), b.chunks.begin(), b.chunks.end(), chunks) &&
         std::equal(a.exchanges.begin(), a.exchanges.end(), b.exchanges.begin(), b.exchanges.end(),
                    exchanges);
}

void Join(const OverviewClass& more, OverviewClass* all) {
  all->coordinates.insert(all->coordinates.end(), more.coordinates.begin(), more.coordinates.end());
  all->lowest_peak = std::min(all->lowest_peak, more.lowest_peak);
  all->highest_peak = std::max(all->highest_peak, more.highest_peak);
  for (size_t c = 0; c < all->chunks.size(); ++c) {
    OverviewChunk& chunk = all->chunks[c];
    const OverviewChunk& added = more.chunks[c];
    chunk.stages.insert(chunk.stages.end(), added.stages.begin(), added.stages.end());
    chunk.layers.insert(chunk.layers.end(), added.layers.begin(), added.layers.end());
    std::sort(chunk.stages.begin(), chunk.stages.end());
    std::sort(chunk.layers.begin(), chunk.layers.end());
  }
}

// `place` says at which entry of the overview each class is.
std::vector<OverviewLink> LinksOf(const Plan& plan, const std::vector<size_t>& place) {
  std::map<std::tuple<size_t, size_t, bool>, OverviewLink> links;
  for (const PlanClass& plan_class : plan.classes) {
    const size_t from = place[static_cast<size_t>(plan_class.coordinate)];
    // Within an entry that stands for several classes, what one of them sends each way.
    const size_t c = static_cast<size_t>(plan_class.coordinate);
    const bool first = c == 0 || place[c - 1] != from;
    const bool last = c + 1 == place.size() || place[c + 1] != from;
    for (const Transfer& transfer : plan_class.train.transfers) {
      if (!IsSend(transfer.ref.kind)) continue;
      const size_t to = place[static_cast<size_t>(transfer.peer)];
      const bool forward = IsForward(transfer.ref.kind);
      if (to == from && !(forward ? first : last)) continue;
      OverviewLink& link = links[{from, to, forward}];
      link = {from, to, forward, std::max(link.bytes, transfer.bytes), link.transfers + 1};
    }
  }
  std::vector<OverviewLink> result;
  result.reserve(links.size());
  for (const auto& [key, link] : links) result.push_back(link);
  return result;
}

}  // namespace

std::string ToString(const OverviewChunk& chunk) {
  std::vector<std::string> held;
  if (chunk.embedding) held.push_back("embedding");
  if (!chunk.layers.empty()) {
    held.push_back(
        absl::StrCat(chunk.layers.size() == 1 ? "layer " : "layers ", RangesText(chunk.layers)));
  }
  if (chunk.head) held.push_back("head");
  return absl::StrCat(chunk.stages.size() == 1 ? "stage " : "stages ", RangesText(chunk.stages),
                      ": ", absl::StrJoin(held, ", "));
}

RankGrid GridOf(const Plan& plan) {
  RankGrid grid;
  std::vector<std::string> down;
  for (AxisId axis = 0; axis < plan.mesh.num_axes(); ++axis) {
    if (axis == PipelineAxis(plan.mesh) || plan.mesh.size(axis) == 1) continue;
    const std::string text = absl::StrCat(plan.mesh.name(axis), " ", plan.mesh.size(axis));
    if (grid.text.empty()) {
      grid.text = absl::StrCat(text, " across");
      grid.columns = plan.mesh.size(axis);
    } else {
      down.push_back(text);
      grid.rows *= plan.mesh.size(axis);
    }
  }
  if (!down.empty()) absl::StrAppend(&grid.text, ", ", absl::StrJoin(down, " x "), " down");
  return grid;
}

std::string ToString(const OverviewExchange& exchange) {
  return absl::StrCat(BytesText(exchange.wire_bytes), " sent over ", exchange.group, " in ",
                      exchange.count, exchange.count == 1 ? " collective" : " collectives");
}

std::string ToString(const OverviewLink& link) {
  return absl::StrCat(link.transfers, " x ", BytesText(link.bytes));
}

std::string PeakText(const OverviewClass& one) {
  const std::string lowest = BytesText(one.lowest_peak);
  const std::string highest = BytesText(one.highest_peak);
  return absl::StrCat("peak ", lowest, lowest == highest ? "" : absl::StrCat(" to ", highest));
}

Overview OverviewOf(const Plan& plan, size_t most) {
  const std::vector<CommEntry> entries = CommEntries(plan);
  const bool joins = plan.classes.size() > most;
  Overview overview;
  std::vector<size_t> place;
  OverviewClass before;
  for (const PlanClass& plan_class : plan.classes) {
    OverviewClass one = {
        {plan_class.coordinate}, plan.mesh.world_size() / static_cast<int64_t>(plan.classes.size()),
        ChunksOf(plan_class),    ExchangesOf(plan, plan_class, entries),
        plan_class.memory.peak,  plan_class.memory.peak};
    if (joins && !overview.classes.empty() && AreAlike(before, one)) {
      Join(one, &overview.classes.back());
    } else {
      overview.classes.push_back(one);
    }
    before = std::move(one);
    place.push_back(overview.classes.size() - 1);
  }
  overview.links = LinksOf(plan, place);
  return overview;
}

std::string TitleOf(const Plan& plan) {
  for (const auto& [option, value] : plan.options) {
    if (option == "model") return value;
  }
  return plan.name;
}

std::vector<std::string> StepFacts(const Plan& plan) {
  const int64_t ranks = plan.mesh.world_size();
  const std::string sizes = MeshSizesText(plan.mesh);
  return {absl::StrCat(ranks, ranks == 1 ? " rank" : " ranks", " of ", plan.machine.name,
                       sizes.empty() ? "" : ": ", sizes),
          absl::StrCat(plan.global_batch_size, " samples a step, each of ", plan.seq_length, ": ",
                       plan.num_micro_batches, " micro-batches of ", plan.micro_batch_size,
                       " on each data-parallel rank"),
          absl::StrCat(CountText(ParameterCount(plan)), " parameters, ", plan.model.num_layers(),
                       " layers; step ", DurationText(plan.predicted_step_ns), " predicted; peak ",
                       BytesText(HighestPeak(plan)), " a rank")};
}

}  // namespace mgc
