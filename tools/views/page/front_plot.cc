#include "tools/views/page/front_plot.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/units.h"
#include "passes/config/config_flags.h"
#include "tools/views/format.h"
#include "tools/views/page/page_style.h"

namespace mgc {
namespace {

// Pixels.
constexpr int64_t kLeft = 80;
constexpr int64_t kRight = 620;
constexpr int64_t kTop = 30;
constexpr int64_t kLeastHeight = 320;
constexpr int64_t kLabels = 650;  // where the column of labels begins
constexpr int64_t kLabelLine = 18;
constexpr int64_t kLetter = 7;
constexpr int64_t kBelow = 45;
constexpr int64_t kTicks = 6;  // of an axis, at most

// Round numbers between two ends: of ten (1, 2, 5) or of two.
std::vector<int64_t> TicksBetween(int64_t low, int64_t high, bool binary) {
  int64_t step = 1;
  for (int64_t i = 0; (high - low) / step > kTicks; ++i) {
    step = binary || i % 3 != 1 ? 2 * step : step / 2 * 5;
  }
  std::vector<int64_t> ticks;
  for (int64_t at = (low + step - 1) / step * step; at <= high; at += step) ticks.push_back(at);
  return ticks;
}

// Numbers from `low` to `high` at pixels from `begin` to `end`.
struct Scale {
  int64_t low = 0;
  int64_t high = 1;
  int64_t begin = 0;
  int64_t end = 0;

  bool Holds(int64_t value) const { return low <= value && value <= high; }
  int64_t At(int64_t value) const {
    const double share =
        static_cast<double>(value - low) / static_cast<double>(std::max<int64_t>(high - low, 1));
    return begin + static_cast<int64_t>(share * static_cast<double>(end - begin));
  }
};

class FrontPlot {
 public:
  FrontPlot(const SearchAnswer& answer, Markup* page)
      : found_(answer.found), memory_(answer.machine.memory), page_(page) {
    int64_t most = 0;
    int64_t least = found_.front.front().peak_bytes;
    int64_t slowest = 0;
    for (const std::vector<FoundPlan>* plans : {&found_.ranked, &found_.front}) {
      for (const FoundPlan& plan : *plans) {
        most = std::max(most, plan.peak_bytes);
        least = std::min(least, plan.peak_bytes);
        slowest = std::max(slowest, plan.step_ns);
      }
    }
    // To scale where that leaves a third of the picture to the plans.
    limit_is_near_ = memory_ - least <= 3 * (most - least) || memory_ <= most + most / 4;
    const int64_t right = limit_is_near_ ? memory_ : most;
    const int64_t fastest = found_.ranked.front().step_ns;
    across_ = {least - (right - least) / 8, right + (right - least) / 8, kLeft, kRight};
    const int64_t lines = static_cast<int64_t>(found_.front.size()) * kLabelLine;
    bottom_ = kTop + std::max(kLeastHeight, lines);
    const int64_t margin = std::max((slowest - fastest) / 8, slowest / 50);
    up_ = {fastest - margin, slowest + margin, bottom_, kTop};
  }

  // `title`: of a file; a page has its own, and the looks.
  void Draw(const absl::optional<std::string>& title) {
    size_t longest = 0;
    for (const FoundPlan& plan : found_.front) {
      longest = std::max(longest, FlagsText(plan.config).size());
    }
    const int64_t width = kLabels + kLetter * (static_cast<int64_t>(longest) + 4);
    page_->Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                        {"id", "plot"},
                        {"viewBox", absl::StrCat("0 0 ", width, " ", bottom_ + kBelow)},
                        {"width", absl::StrCat(width)}});
    page_->NewLine();
    if (title.has_value()) {
      page_->Verbatim("style", PictureStyle()).NewLine().Element("title", {}, *title).NewLine();
    }
    AddAxes();
    AddLimit();
    AddLine();
    for (const FoundPlan& plan : found_.known) {
      if (IsInside(plan) && !IsOfFront(plan)) AddPoint(plan, "found", "4");
    }
    AddLabels();
    for (const FoundPlan& plan : found_.front) AddPoint(plan, "front", "6");
    page_->Close().NewLine();
  }

  void AddCaption() {
    const auto outside = std::count_if(found_.known.begin(), found_.known.end(),
                                       [this](const FoundPlan& p) { return !IsInside(p); });
    page_->Open("p", {{"class", "key"}});
    page_->Open("span").Element("i", {{"class", "front"}}, "").Text("fastest of less memory");
    page_->Close().Open("span").Element("i", {{"class", "found"}}, "").Text("other compiled plans");
    page_->Close();
    if (outside > 0) page_->Text(absl::StrCat(outside, " lie outside of the picture"));
    page_->Close().NewLine();
  }

 private:
  bool IsInside(const FoundPlan& plan) const {
    return across_.Holds(plan.peak_bytes) && up_.Holds(plan.step_ns);
  }
  bool IsOfFront(const FoundPlan& plan) const {
    return std::any_of(
        found_.front.begin(), found_.front.end(), [&plan](const FoundPlan& of_front) {
          return of_front.step_ns == plan.step_ns && of_front.peak_bytes == plan.peak_bytes;
        });
  }

  void AddText(int64_t x, int64_t y, const char* anchor, const std::string& text) {
    page_
        ->Element("text", {{"x", absl::StrCat(x)}, {"y", absl::StrCat(y)}, {"text-anchor", anchor}},
                  text)
        .NewLine();
  }
  void AddPath(const char* look, const std::string& path) {
    page_->Open("path", {{"class", look}, {"d", path}}).Close().NewLine();
  }

  void AddAxes() {
    AddPath("cell", absl::StrCat("M", kLeft, " ", kTop, "V", bottom_, "H", kRight));
    for (const int64_t bytes :
         TicksBetween(std::max<int64_t>(across_.low, 0), across_.high, true)) {
      AddPath("cell", absl::StrCat("M", across_.At(bytes), " ", bottom_, "v5"));
      AddText(across_.At(bytes), bottom_ + 20, "middle", BytesText(bytes));
    }
    for (const int64_t ns : TicksBetween(std::max<int64_t>(up_.low, 0), up_.high, false)) {
      AddPath("cell", absl::StrCat("M", kLeft, " ", up_.At(ns), "h-5"));
      AddText(kLeft - 9, up_.At(ns) + 4, "end", DurationText(ns));
    }
    AddText(kLeft, kTop - 14, "middle", "step");
    AddText(kRight, bottom_ + 38, "end", "peak of a rank");
  }

  void AddLimit() {
    const int64_t x = limit_is_near_ ? across_.At(memory_) : kRight;
    page_->Open("path", {{"class", "limit"},
                         {"d", absl::StrCat("M", x, " ", kTop, "V", bottom_)},
                         {"data-bytes", absl::StrCat(memory_)}});
    page_->Close().NewLine();
    AddText(x, kTop - 14, "middle",
            absl::StrCat("a device has ", BytesText(memory_),
                         limit_is_near_ ? "" : ", beyond this scale"));
  }

  void AddLine() {
    std::string path;
    for (const FoundPlan& plan : found_.front) {
      absl::StrAppend(&path, path.empty() ? "M" : "L", across_.At(plan.peak_bytes), " ",
                      up_.At(plan.step_ns));
    }
    AddPath("frontier", path);
  }

  void AddPoint(const FoundPlan& plan, const char* look, const char* radius) {
    page_->Open("circle", {{"class", look},
                           {"cx", absl::StrCat(across_.At(plan.peak_bytes))},
                           {"cy", absl::StrCat(up_.At(plan.step_ns))},
                           {"r", radius},
                           {"data-step-ns", absl::StrCat(plan.step_ns)},
                           {"data-peak", absl::StrCat(plan.peak_bytes)}});
    page_->Element("title", {},
                   absl::StrCat(DurationText(plan.step_ns), ", ", BytesText(plan.peak_bytes), ": ",
                                FlagsText(plan.config)));
    page_->Close().NewLine();
  }

  // In a column, from the slowest above to the fastest below, each as near to the height of its
  // point as the one below it allows.
  void AddLabels() {
    int64_t lowest = bottom_;
    for (size_t i = 0; i < found_.front.size(); ++i) {
      const FoundPlan& plan = found_.front[i];
      const int64_t above = static_cast<int64_t>(found_.front.size() - 1 - i) * kLabelLine;
      const int64_t at = up_.At(plan.step_ns);
      const int64_t y = std::max(std::min(at, lowest), kTop + above);
      lowest = y - kLabelLine;
      AddPath("leader", absl::StrCat("M", across_.At(plan.peak_bytes), " ", at, "H", kRight + 4,
                                     "L", kLabels - 6, " ", y));
      page_->Element("text",
                     {{"class", "label"}, {"x", absl::StrCat(kLabels)}, {"y", absl::StrCat(y + 4)}},
                     absl::StrCat(i + 1, "  ", FlagsText(plan.config)));
      page_->NewLine();
    }
  }

  const FoundPlans& found_;
  const int64_t memory_;
  Markup* const page_;
  bool limit_is_near_ = false;
  int64_t bottom_ = 0;
  Scale across_;
  Scale up_;
};

}  // namespace

void AddFrontPlot(const SearchAnswer& answer, Markup* page) {
  if (answer.found.front.empty()) return;
  FrontPlot plot(answer, page);
  plot.AddCaption();
  plot.Draw(absl::nullopt);
}

std::string FrontPicture(const SearchAnswer& answer) {
  Markup picture;
  FrontPlot(answer, &picture).Draw(TitleOf(answer));
  return std::move(picture).Elements();
}

}  // namespace mgc
