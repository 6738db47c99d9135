// How a page looks. Colours of what is drawn are those of all pictures (drawings/looks.h).

#ifndef MGC_TOOLS_VIEWS_PAGE_PAGE_STYLE_H_
#define MGC_TOOLS_VIEWS_PAGE_PAGE_STYLE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/views/drawings/looks.h"

namespace mgc {

// Elements of this class have this colour, in pictures and as keys to them.
inline std::string FillStyle(const char* name, const char* color) {
  return absl::StrCat(".", name, "{fill:", color, ";background:", color, "}\n");
}

// Lines of this class have this colour.
inline std::string CurveStyle(const char* name, const char* color) {
  return absl::StrCat(".curve.", name, "{fill:none;stroke-width:1.5;stroke:", color, "}\n");
}

// What pictures need that stand by themselves too.
inline std::string PictureStyle() {
  return absl::StrCat(
      "\n:root{color-scheme:light dark;--ink:#1b1f24;--soft:#667;--paper:#fff;--box:#f4f6f8}\n"
      "@media(prefers-color-scheme:dark){"
      ":root{--ink:#e6e9ec;--soft:#9aa4ae;--paper:#15181c;--box:#22272d}}\n"
      "svg{background:var(--paper)}svg text{fill:var(--ink);font:12px system-ui,sans-serif}\n"
      "svg .cell{fill:none;stroke:var(--soft);stroke-width:.6}\n"
      ".limit{stroke:var(--ink);stroke-dasharray:6 4;vector-effect:non-scaling-stroke}\n"
      ".frontier,.leader{fill:none;stroke:var(--ink)}.leader{stroke:var(--soft);stroke-width:.6}\n"
      "svg .front,svg .found{stroke:var(--paper)}\n",
      FillStyle("front", kUpdateColor), FillStyle("found", "#999999"));
}

inline std::string PageStyle() {
  return absl::StrCat(
      PictureStyle(),
      "body{font:14px/1.4 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
      "max-width:1500px;margin:0 auto;padding:0 1rem 3rem}\n"
      "h1{font-size:1.5rem;margin:1rem 0 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}\n"
      "p{margin:.2rem 0;color:var(--soft)}code,pre{font:12px/1.45 ui-monospace,monospace}\n"
      "pre{overflow-x:auto;background:var(--box);padding:.6rem;border-radius:6px}\n"
      "svg{display:block;max-width:100%}\n"
      "svg .title{font-weight:600}svg .box{fill:var(--box);stroke:var(--soft)}\n"
      "svg .arrow{fill:none;stroke-width:2}\n"
      "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
      "td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid var(--box)}\n"
      ".key span{display:inline-block;margin-right:1rem}\n"
      ".key i{display:inline-block;width:.9em;height:.9em;margin-right:.35em;"
      "vertical-align:-.1em;border-radius:2px}\n"
      ".timed{display:grid;grid-template-columns:4rem 1fr;align-items:start}\n"
      ".names div{height:30px;line-height:30px;font-size:12px}\n"
      ".scroll{overflow-x:auto}.zoom{width:100%}\n"
      ".scale{display:flex;justify-content:space-between;font-size:12px;color:var(--soft)}\n"
      ".words{text-align:left}\n"
      "summary{cursor:pointer}\n",
      FillStyle("prepare", kPrepareColor), FillStyle("forward", kForwardColor),
      FillStyle("backward", kBackwardColor), FillStyle("update", kUpdateColor),
      FillStyle("collective", kCollectiveColor), FillStyle("sent", LookOfTransfer(true).color),
      FillStyle("received", LookOfTransfer(false).color), FillStyle("params", "#0072B2"),
      FillStyle("grads", "#D55E00"), FillStyle("optimizer", kUpdateColor),
      FillStyle("copies", kPrepareColor), FillStyle("activations", kForwardColor),
      FillStyle("boundaries", kCollectiveColor), FillStyle("transient", "#999999"),
      CurveStyle("forward", kForwardColor), CurveStyle("backward", kBackwardColor),
      CurveStyle("update", kUpdateColor), CurveStyle("prepare", kPrepareColor),
      CurveStyle("sent", LookOfTransfer(true).color),
      CurveStyle("received", LookOfTransfer(false).color), CurveStyle("params", "#0072B2"));
}

// What the slider of the schedule does to all pictures along time.
inline constexpr char kZoomScript[] =
    "for (const wide of document.querySelectorAll('.zoom')) wide.style.width = this.value + '%'";

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_PAGE_STYLE_H_
