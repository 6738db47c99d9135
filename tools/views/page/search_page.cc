#include "tools/views/page/search_page.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/views/format.h"
#include "tools/views/page/front_plot.h"
#include "tools/views/page/markup.h"
#include "tools/views/page/page_parts.h"

namespace mgc {
namespace {

void AddCells(const char* tag, const std::vector<std::string>& cells, Markup* page) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool words = i + 1 == cells.size();
    page->Element(tag, words ? MarkupAttrs{{"class", "words"}} : MarkupAttrs(), cells[i]);
  }
}

void AddPlans(const char* id, const std::vector<FoundPlan>& plans, Markup* page) {
  const std::vector<std::vector<std::string>> rows = PlanRows(plans);
  page->Open("table", {{"id", id}}).Open("tr");
  AddCells("th", rows[0], page);
  page->Close().NewLine();
  for (size_t i = 0; i < plans.size(); ++i) {
    page->Open("tr", {{"data-step-ns", absl::StrCat(plans[i].step_ns)},
                      {"data-peak", absl::StrCat(plans[i].peak_bytes)}});
    AddCells("td", rows[i + 1], page);
    page->Close().NewLine();
  }
  page->Close().NewLine();
}

void AddWhyNot(const SearchAnswer& answer, Markup* page) {
  if (answer.why_not.empty()) return;
  page->Element("h2", {}, "Why not another?").NewLine();
  page->Open("table", {{"id", "why-not"}});
  for (const RejectedPlan& rejected : answer.why_not) {
    page->Open("tr").Open("td", {{"class", "words"}}).Element("code", {}, rejected.change).Close();
    page->Element("td", {{"class", "words"}}, rejected.why).Close().NewLine();
  }
  page->Close().NewLine();
}

void AddCount(const char* what, int64_t value, const std::string& text, Markup* page) {
  page->Open("tr").Element("td", {{"class", "words"}}, what);
  page->Element("td", {{"data-value", absl::StrCat(value)}}, text).Close().NewLine();
}

void AddSearched(const SearchAnswer& answer, Markup* page) {
  const FoundPlans& found = answer.found;
  page->Element("h2", {}, "What was searched").NewLine();
  for (const bool open : {true, false}) {
    const std::vector<std::string> choices = ChoicesOf(answer.fixed, open);
    if (choices.empty()) continue;
    page->Open("p").Text(open ? "chosen: " : "given by flags: ");
    page->Element("code", {}, absl::StrJoin(choices, " ")).Close().NewLine();
  }
  page->Open("table", {{"id", "searched"}}).NewLine();
  const std::pair<const char*, int64_t> counts[] = {
      {"combinations that a rule refuses", found.refused},
      {"candidates", found.candidates},
      {"of them looked at that need more memory than there is", found.too_large},
      {"profiles of layers", found.profiled},
      {"plans compiled", found.compiled},
      {"plans to compile at most, before climbing", answer.budget},
  };
  for (const auto& [what, count] : counts) AddCount(what, count, absl::StrCat(count), page);
  AddCount("no candidate is faster than", found.least_bound_ns, DurationText(found.least_bound_ns),
           page);
  page->Close().NewLine();
}

}  // namespace

std::string SearchPage(const SearchAnswer& answer) {
  const ParallelConfig& config = answer.found.ranked.front().config;
  const std::string title = TitleOf(answer);
  Markup page;
  page.Open("html", {{"lang", "en"}}).NewLine();
  AddHead(title, &page);
  page.Open("body").NewLine();
  page.Element("h1", {}, title).NewLine();
  page.Element(
      "p", {},
      absl::StrCat(config.global_batch_size, " samples of ", config.seq_length, " tokens a step"));
  page.Element("p", {}, SearchedText(answer)).NewLine();
  page.Element("h2", {}, "The fastest plan of each mesh").NewLine();
  AddPlans("ranked", answer.found.ranked, &page);
  page.Element("h2", {}, "Time against memory").NewLine();
  AddFrontPlot(answer, &page);
  AddPlans("front", answer.found.front, &page);
  AddWhyNot(answer, &page);
  AddSearched(answer, &page);
  page.Close().NewLine().Close();
  return std::move(page).Finish();
}

}  // namespace mgc
