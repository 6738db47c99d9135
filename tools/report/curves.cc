#include "tools/report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 200;
constexpr double kLeft = 90;  // where numbers stand
constexpr double kTop = 10;
constexpr double kBottom = 22;  // where steps stand
constexpr double kRight = 10;
constexpr size_t kMostPoints = 500;

// From which number to which a picture goes.
struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Where a number lies in it, from 0 to 1.
  double Share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

std::string Pixel(double value) { return absl::StrFormat("%.1f", value); }

class Picture {
 public:
  Picture(const CurvePlot& plot, const RunLog& log, Markup* page)
      : plot_(plot), log_(log), page_(page) {
    for (const Curve& curve : plot.curves) {
      for (const LogPoint& point : log.Of(curve.key)) {
        if (!std::isfinite(point.value)) continue;
        steps_.Take(static_cast<double>(point.step));
        values_.Take(point.value);
      }
    }
  }

  bool empty() const { return values_.low > values_.high; }

  void Add() {
    page_->Open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                        {"viewBox", absl::StrFormat("0 0 %.0f %.0f", kWidth, kHeight)},
                        {"width", absl::StrFormat("%.0f", kWidth)}});
    page_->NewLine();
    AddFrame();
    for (const Curve& curve : plot_.curves) AddLine(curve);
    page_->Close().NewLine();
  }

 private:
  double X(int64_t step) const {
    return kLeft + (kWidth - kLeft - kRight) * steps_.Share(static_cast<double>(step));
  }
  double Y(double value) const {
    return kTop + (kHeight - kTop - kBottom) * (1 - values_.Share(value));
  }
  std::string NumberText(double value) const {
    return absl::StrCat(absl::StrFormat("%.4g", value * plot_.scale), plot_.unit.empty() ? "" : " ",
                        plot_.unit);
  }

  void AddFrame() {
    for (const double value : {values_.low, values_.high}) {
      page_->Open("path", {{"class", "cell"},
                           {"d", absl::StrCat("M", Pixel(kLeft), " ", Pixel(Y(value)), "H",
                                              Pixel(kWidth - kRight))}});
      page_->Close();
      page_->Element("text",
                     {{"x", Pixel(kLeft - 6)}, {"y", Pixel(Y(value) + 4)}, {"text-anchor", "end"}},
                     NumberText(value));
      page_->NewLine();
      if (values_.low == values_.high) break;
    }
    for (const double step : {steps_.low, steps_.high}) {
      const bool first = step == steps_.low;
      page_->Element("text",
                     {{"x", Pixel(X(static_cast<int64_t>(step)))},
                      {"y", Pixel(kHeight - 6)},
                      {"text-anchor", first ? "start" : "end"}},
                     absl::StrFormat("step %.0f", step));
      page_->NewLine();
      if (steps_.low == steps_.high) break;
    }
  }

  void AddLine(const Curve& curve) {
    const LogSeries& series = log_.Of(curve.key);
    const size_t every = (series.size() + kMostPoints - 1) / kMostPoints;
    std::string path;
    bool gap = true;
    LogSeries drawn;
    for (size_t i = 0; i < series.size(); ++i) {
      if (i % every != 0 && i + 1 < series.size()) continue;
      const LogPoint& point = series[i];
      if (std::isfinite(point.value)) {
        absl::StrAppend(&path, gap ? "M" : "L", Pixel(X(point.step)), " ", Pixel(Y(point.value)));
        drawn.push_back(point);
      }
      gap = !std::isfinite(point.value);
    }
    page_->Open("path", {{"class", absl::StrCat("curve ", curve.look)}, {"d", path}});
    page_->Close().NewLine();
    for (const LogPoint& point : drawn) AddPoint(curve, point);
  }

  void AddPoint(const Curve& curve, const LogPoint& point) {
    page_->Open("circle", {{"class", curve.look},
                           {"cx", Pixel(X(point.step))},
                           {"cy", Pixel(Y(point.value))},
                           {"r", "2"},
                           {"data-key", curve.key},
                           {"data-step", absl::StrCat(point.step)},
                           {"data-value", JsonNumber(point.value)}});
    page_->Element("title", {},
                   absl::StrCat(curve.key, ", step ", point.step, ": ", NumberText(point.value)));
    page_->Close().NewLine();
  }

  const CurvePlot& plot_;
  const RunLog& log_;
  Markup* const page_;
  Span steps_;
  Span values_;
};

}  // namespace

void AddCurves(const CurvePlot& plot, const RunLog& log, Markup* page) {
  Picture picture(plot, log, page);
  if (picture.empty()) return;
  page->Element("h3", {}, plot.title).NewLine();
  page->Open("p", {{"class", "key"}});
  for (const Curve& curve : plot.curves) {
    if (log.Of(curve.key).empty()) continue;
    page->Open("span").Element("i", {{"class", curve.look}}, "").Text(curve.key).Close();
  }
  page->Close().NewLine();
  picture.Add();
}

}  // namespace mgc
