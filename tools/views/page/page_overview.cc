#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "tools/views/drawings/looks.h"
#include "tools/views/format.h"
#include "tools/views/overview.h"
#include "tools/views/page/page_parts.h"

namespace mgc {
namespace {

constexpr size_t kMostClasses = 16;
// Pixels.
constexpr int64_t kBoxesInLine = 4;
constexpr int64_t kBoxWidth = 285;
constexpr int64_t kGapAcross = 105;
constexpr int64_t kGapDown = 56;
constexpr int64_t kMargin = 60;
constexpr int64_t kLine = 17;
constexpr int64_t kCell = 7;
constexpr int64_t kMostColumns = 32;
constexpr int64_t kMostRows = 8;
constexpr int64_t kApart = 14;  // the two arrows between boxes, from their middle

struct Point {
  int64_t x = 0;
  int64_t y = 0;
};

class OverviewPicture {
 public:
  OverviewPicture(const Plan& plan, Markup* page)
      : plan_(plan), page_(page), overview_(OverviewOf(plan, kMostClasses)), grid_(GridOf(plan)) {
    for (size_t c = 0; c < overview_.classes.size(); ++c) {
      lines_.push_back(LinesOf(c));
      const int64_t lines = static_cast<int64_t>(lines_.back().size());
      height_ = std::max(height_, lines * kLine + std::min(grid_.rows, kMostRows) * kCell + 24);
    }
  }

  void Draw() {
    const int64_t boxes = static_cast<int64_t>(overview_.classes.size());
    const int64_t columns = std::min(boxes, kBoxesInLine);
    const int64_t width = 2 * kMargin + columns * (kBoxWidth + kGapAcross) - kGapAcross;
    const int64_t rows = (boxes + kBoxesInLine - 1) / kBoxesInLine;
    page_->Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                        {"viewBox", absl::StrCat("0 0 ", width, " ", rows * (height_ + kGapDown))},
                        {"width", absl::StrCat(width)}});
    page_->NewLine();
    AddMarker("ahead", true);
    AddMarker("back", false);
    for (size_t c = 0; c < overview_.classes.size(); ++c) AddBox(c);
    for (const OverviewLink& link : overview_.links) AddLink(link);
    page_->Close().NewLine();
  }

 private:
  std::vector<std::string> LinesOf(size_t c) const {
    const OverviewClass& one = overview_.classes[c];
    const bool several = one.coordinates.size() > 1;
    std::vector<std::string> lines = {absl::StrCat(
        plan_.classes.size() > 1 ? absl::StrCat("pp ", RangesText(one.coordinates), ": ") : "",
        several ? absl::StrCat(one.coordinates.size(), " x ") : "", one.ranks,
        one.ranks == 1 ? " rank" : " ranks")};
    for (const OverviewChunk& chunk : one.chunks) lines.push_back(ToString(chunk));
    lines.push_back(absl::StrCat(PeakText(one), " a rank"));
    for (const OverviewExchange& exchange : one.exchanges) lines.push_back(ToString(exchange));
    for (const OverviewLink& link : overview_.links) {
      if (link.from != c) continue;
      if (link.to == c) {
        lines.push_back(
            absl::StrCat(ToString(link), link.forward ? " on to the next" : " back from the next"));
      } else if (!IsDrawn(link)) {
        lines.push_back(absl::StrCat(ToString(link), " to pp ",
                                     RangesText(overview_.classes[link.to].coordinates)));
      }
    }
    return lines;
  }

  bool IsDrawn(const OverviewLink& link) const {
    Point label;
    return PathOf(link, &label).has_value();
  }

  // Lines of boxes go to and fro, so that neighbours are always near.
  int64_t LineOf(size_t c) const { return static_cast<int64_t>(c) / kBoxesInLine; }
  int64_t ColumnOf(size_t c) const {
    const int64_t in_line = static_cast<int64_t>(c) % kBoxesInLine;
    return LineOf(c) % 2 == 0 ? in_line : kBoxesInLine - 1 - in_line;
  }
  Point CornerOf(size_t c) const {
    return {kMargin + ColumnOf(c) * (kBoxWidth + kGapAcross), LineOf(c) * (height_ + kGapDown) + 2};
  }

  void AddMarker(const char* name, bool forward) {
    page_->Open("marker", {{"id", name},
                           {"viewBox", "0 0 10 10"},
                           {"refX", "9"},
                           {"refY", "5"},
                           {"markerWidth", "5"},
                           {"markerHeight", "5"},
                           {"orient", "auto-start-reverse"}});
    page_->Open("path", {{"d", "M0 0L10 5L0 10Z"}, {"fill", LookOfTransfer(forward).color}});
    page_->Close().Close().NewLine();
  }

  void AddText(Point at, absl::string_view text, const MarkupAttrs& more) {
    MarkupAttrs attrs = {{"x", absl::StrCat(at.x)}, {"y", absl::StrCat(at.y)}};
    attrs.insert(attrs.end(), more.begin(), more.end());
    page_->Element("text", attrs, text).NewLine();
  }

  void AddBox(size_t c) {
    const Point corner = CornerOf(c);
    page_->Open("rect", {{"class", "box"},
                         {"x", absl::StrCat(corner.x)},
                         {"y", absl::StrCat(corner.y)},
                         {"width", absl::StrCat(kBoxWidth)},
                         {"height", absl::StrCat(height_)},
                         {"rx", "8"},
                         {"data-peak", absl::StrCat(overview_.classes[c].highest_peak)}});
    page_->Close().NewLine();
    Point at = {corner.x + 10, corner.y + kLine};
    for (const std::string& line : lines_[c]) {
      AddText(at, line, at.y == corner.y + kLine ? MarkupAttrs{{"class", "title"}} : MarkupAttrs());
      at.y += kLine;
    }
    AddGrid({at.x, at.y - kLine / 2});
  }

  // A cell for each rank of the class.
  void AddGrid(Point corner) {
    const int64_t columns = std::min(grid_.columns, kMostColumns);
    const int64_t rows = std::min(grid_.rows, kMostRows);
    std::string path;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        absl::StrAppend(&path, "M", corner.x + column * kCell, " ", corner.y + row * kCell, "h",
                        kCell - 1, "v", kCell - 1, "h-", kCell - 1, "z");
      }
    }
    page_->Open("path", {{"class", "cell"}, {"d", path}}).Close();
    const bool whole = columns == grid_.columns && rows == grid_.rows;
    AddText({corner.x + columns * kCell + 6, corner.y + 10},
            absl::StrCat(grid_.text, whole ? "" : " ..."), {});
  }

  // From the edge of one box to that of another; none between boxes that are far from each other.
  absl::optional<std::string> PathOf(const OverviewLink& link, Point* label) const {
    const Point from = CornerOf(link.from);
    const Point to = CornerOf(link.to);
    const int64_t aside = link.forward ? -kApart : kApart;
    const int64_t columns = ColumnOf(link.to) - ColumnOf(link.from);
    const int64_t lines = LineOf(link.to) - LineOf(link.from);
    if (lines == 0 && std::abs(columns) == 1) {
      const int64_t y = from.y + height_ / 2 + aside;
      const int64_t begin = columns > 0 ? from.x + kBoxWidth : from.x;
      const int64_t end = columns > 0 ? to.x : to.x + kBoxWidth;
      *label = {(begin + end) / 2, y + (link.forward ? -5 : 15)};
      return absl::StrCat("M", begin, " ", y, "H", end);
    }
    if (columns == 0 && std::abs(lines) == 1) {
      const int64_t x = from.x + kBoxWidth / 2 + aside;
      const int64_t begin = lines > 0 ? from.y + height_ : from.y;
      const int64_t end = lines > 0 ? to.y : to.y + height_;
      *label = {x + (link.forward ? -50 : 50), (begin + end) / 2 + 4};
      return absl::StrCat("M", x, " ", begin, "V", end);
    }
    return PathAround(link, label);
  }

  // Between the first and the last box, along the left edge.
  absl::optional<std::string> PathAround(const OverviewLink& link, Point* label) const {
    const size_t last = overview_.classes.size() - 1;
    if (std::min(link.from, link.to) != 0 || std::max(link.from, link.to) != last) {
      return absl::nullopt;
    }
    const int64_t aside = link.forward ? -kApart : kApart;
    const Point first = CornerOf(0);
    const Point end = CornerOf(last);
    const int64_t x = kMargin / 2 + aside;
    const int64_t y = first.y + height_ / 2 + aside;
    const int64_t below = end.y + height_ + kGapDown / 2 + aside;
    const int64_t middle = end.x + kBoxWidth / 2 + aside;
    *label = {x + 75, below + (link.forward ? -4 : 12)};
    if (link.to == 0) {
      return absl::StrCat("M", middle, " ", end.y + height_, "V", below, "H", x, "V", y, "H",
                          first.x);
    }
    return absl::StrCat("M", first.x, " ", y, "H", x, "V", below, "H", middle, "V",
                        end.y + height_);
  }

  void AddLink(const OverviewLink& link) {
    if (link.from == link.to) return;  // its box says so
    Point label;
    const absl::optional<std::string> path = PathOf(link, &label);
    const TransferLook look = LookOfTransfer(link.forward);
    if (path.has_value()) {
      MarkupAttrs attrs = {{"class", "arrow"},
                           {"d", *path},
                           {"stroke", look.color},
                           {"marker-end", link.forward ? "url(#ahead)" : "url(#back)"},
                           {"data-bytes", absl::StrCat(link.bytes)}};
      if (!link.forward) attrs.push_back({"stroke-dasharray", "7 4"});
      page_->Open("path", attrs).Close();
      AddText(label, ToString(link), {{"text-anchor", "middle"}});
    }
  }

  const Plan& plan_;
  Markup* const page_;
  const Overview overview_;
  const RankGrid grid_;
  std::vector<std::vector<std::string>> lines_;
  int64_t height_ = 0;  // of a box
};

}  // namespace

void AddOverview(const Plan& plan, Markup* page) {
  page->Element("h2", {}, "What is where, and who sends what").NewLine();
  page->Open("p", {{"class", "key"}});
  page->Open("span").Element("i", {{"class", "sent"}}, "").Text("activations forward").Close();
  page->Open("span").Element("i", {{"class", "received"}}, "").Text("their gradients back").Close();
  page->Text("times a step, bytes of one rank and one micro-batch").Close().NewLine();
  OverviewPicture(plan, page).Draw();
}

}  // namespace mgc
