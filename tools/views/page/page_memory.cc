#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/units.h"
#include "tools/views/memory.h"
#include "tools/views/memory_over_time.h"
#include "tools/views/page/page_parts.h"

namespace mgc {
namespace {

constexpr int64_t kHeight = 180;  // pixels of one picture

// Bytes of one kind along time: at each place until the next.
struct Layer {
  const char* name;
  std::vector<std::pair<int64_t, int64_t>> bytes;
};

// Stacks layers from below.
class Stack {
 public:
  Stack(int64_t all_bytes, Markup* page)
      : all_(std::max<int64_t>(all_bytes, 1)), page_(page), top_({{0, 0}}) {}

  void Add(const Layer& layer) {
    std::vector<std::pair<int64_t, int64_t>> top = Sum(layer.bytes);
    std::string path = "M0 " + HeightOf(top_[0].second);
    AppendUp(top, &path);
    AppendDown(top_, &path);
    page_->Open("path", {{"class", layer.name}, {"d", path + "Z"}});
    page_->Element("title", {}, layer.name).Close().NewLine();
    top_ = std::move(top);
  }

 private:
  // The sum of the top so far and of what lies on it.
  std::vector<std::pair<int64_t, int64_t>> Sum(
      const std::vector<std::pair<int64_t, int64_t>>& more) const {
    std::vector<std::pair<int64_t, int64_t>> sum;
    size_t below = 0;
    size_t above = 0;
    while (below < top_.size() || above < more.size()) {
      const int64_t from_below = below < top_.size() ? top_[below].first : kTimeWidth + 1;
      const int64_t from_above = above < more.size() ? more[above].first : kTimeWidth + 1;
      const int64_t at = std::min(from_below, from_above);
      if (from_below == at) ++below;
      if (from_above == at) ++above;
      const int64_t bytes =
          top_[below > 0 ? below - 1 : 0].second + (above > 0 ? more[above - 1].second : 0);
      sum.emplace_back(at, bytes);
    }
    return sum;
  }

  std::string HeightOf(int64_t bytes) const {
    const double share = static_cast<double>(bytes) / static_cast<double>(all_);
    return absl::StrFormat("%.1f", static_cast<double>(kHeight) * (1 - share));
  }

  void AppendUp(const std::vector<std::pair<int64_t, int64_t>>& line, std::string* path) const {
    for (const auto& [at, bytes] : line) absl::StrAppend(path, "H", at, "V", HeightOf(bytes));
    absl::StrAppend(path, "H", kTimeWidth);
  }

  void AppendDown(const std::vector<std::pair<int64_t, int64_t>>& line, std::string* path) const {
    for (size_t i = line.size(); i > 0; --i) {
      absl::StrAppend(path, "V", HeightOf(line[i - 1].second), "H", line[i - 1].first);
    }
  }

  const int64_t all_;
  Markup* const page_;
  std::vector<std::pair<int64_t, int64_t>> top_;
};

std::vector<Layer> LayersOf(const Plan& plan, const PlanClass& plan_class,
                            const SimulatedStep& step) {
  const MemoryUse& memory = plan_class.memory;
  std::vector<Layer> layers = {{"params", {{0, memory.params}}},
                               {"grads", {{0, memory.grads}}},
                               {"optimizer", {{0, memory.states}}},
                               {"copies", {{0, memory.copies}}},
                               {"boundaries", {{0, memory.boundaries}}},
                               {"activations", {}},
                               {"transient", {}}};
  for (const MemorySample& sample : MemoryOverTime(plan, plan_class, step)) {
    const int64_t at = PlaceInTime(sample.begin_ns, step);
    for (const auto& [layer, bytes] : {std::make_pair(&layers[5], sample.activations),
                                       std::make_pair(&layers[6], sample.transient)}) {
      // What lasts less than a unit is told by its most.
      if (!layer->bytes.empty() && layer->bytes.back().first == at) {
        layer->bytes.back().second = std::max(layer->bytes.back().second, bytes);
      } else {
        layer->bytes.emplace_back(at, bytes);
      }
    }
  }
  return layers;
}

void AddPicture(const Plan& plan, const PlanClass& plan_class, const SimulatedStep& step,
                Markup* page) {
  page->Element("p", {},
                absl::StrCat("pp ", plan_class.coordinate, ": peak ",
                             BytesText(plan_class.memory.peak), " a rank"));
  page->NewLine().Open("div", {{"class", "timed"}});
  page->Open("div", {}).Element("small", {}, BytesText(plan_class.memory.peak)).Close();
  page->Open("div", {{"class", "scroll"}}).Open("div", {{"class", "zoom"}});
  page->Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                     {"viewBox", absl::StrCat("0 0 ", kTimeWidth, " ", kHeight)},
                     {"preserveAspectRatio", "none"},
                     {"width", "100%"},
                     {"height", absl::StrCat(kHeight)}});
  page->NewLine();
  Stack stack(plan_class.memory.peak, page);
  for (const Layer& layer : LayersOf(plan, plan_class, step)) stack.Add(layer);
  page->Open("path", {{"class", "limit"}, {"d", absl::StrCat("M0 0H", kTimeWidth)}});
  page->Close().Close();
  AddTimeScale(step, page);
  page->Close().Close().Close().NewLine();
}

void AddTable(const Plan& plan, Markup* page) {
  page->Open("table").Open("tr").Element("th", {}, "pp");
  for (const MemoryPurpose& purpose : kMemoryPurposes) page->Element("th", {}, purpose.name);
  page->Close().NewLine();
  for (const PlanClass& plan_class : plan.classes) {
    page->Open("tr").Element("td", {}, absl::StrCat(plan_class.coordinate));
    for (const MemoryPurpose& purpose : kMemoryPurposes) {
      const int64_t bytes = plan_class.memory.*purpose.bytes;
      page->Element("td", {{"data-bytes", absl::StrCat(bytes)}}, BytesText(bytes));
    }
    page->Close().NewLine();
  }
  page->Close().NewLine();
}

}  // namespace

void AddMemory(const Plan& plan, const SimulatedStep& step, Markup* page) {
  if (plan.classes.empty()) return;
  page->Element("h2", {}, "Memory of a rank along the step").NewLine();
  page->Open("p", {{"class", "key"}});
  for (const MemoryPurpose& purpose : kMemoryPurposes) {
    const absl::string_view name = purpose.name;
    if (name == "peak" || name == "workspace") continue;
    page->Open("span").Element("i", {{"class", std::string(name)}}, "").Text(name).Close();
  }
  page->Close().NewLine();
  const auto fullest = std::max_element(
      plan.classes.begin(), plan.classes.end(),
      [](const PlanClass& a, const PlanClass& b) { return a.memory.peak < b.memory.peak; });
  std::vector<const PlanClass*> shown = {&*fullest, &plan.classes.front(), &plan.classes.back()};
  for (size_t i = 0; i < shown.size(); ++i) {
    if (std::count(shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(i), shown[i]) > 0) {
      continue;
    }
    AddPicture(plan, *shown[i], step, page);
  }
  AddTable(plan, page);
}

}  // namespace mgc
