#include "tools/views/page/page.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "passes/plan/time/predict_step.h"
#include "tools/views/overview.h"
#include "tools/views/page/markup.h"
#include "tools/views/page/page_parts.h"
#include "tools/views/page/page_style.h"

namespace mgc {
namespace {

void AddFacts(const Plan& plan, Markup* page) {
  page->Element("h1", {}, TitleOf(plan)).NewLine();
  for (const std::string& fact : StepFacts(plan)) page->Element("p", {}, fact).NewLine();
  std::string flags;
  for (const auto& [name, value] : plan.options) {
    if (name != "model") {
      absl::StrAppend(&flags, flags.empty() ? "" : " ", name, value.empty() ? "" : " ", value);
    }
  }
  page->Open("p").Element("code", {}, flags).Close().NewLine();
  for (const std::string& note : plan.notes) page->Element("p", {}, note).NewLine();
}

}  // namespace

void AddHead(absl::string_view title, Markup* page) {
  page->Open("head").NewLine().Void("meta", {{"charset", "utf-8"}}).NewLine();
  page->Void("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page->NewLine().Element("title", {}, title).NewLine();
  page->Verbatim("style", PageStyle()).NewLine().Close().NewLine();
}

absl::Status AddPlan(const Plan& plan, Markup* page) {
  MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(plan));
  AddFacts(plan, page);
  AddOverview(plan, page);
  AddSchedule(plan, step, page);
  AddMemory(plan, step, page);
  AddLists(plan, page);
  return absl::OkStatus();
}

absl::StatusOr<std::string> PlanPage(const Plan& plan) {
  Markup page;
  page.Open("html", {{"lang", "en"}}).NewLine();
  AddHead(absl::StrCat(TitleOf(plan), " - mgc plan"), &page);
  page.Open("body").NewLine();
  MGC_RETURN_IF_ERROR(AddPlan(plan, &page));
  page.Close().NewLine().Close();
  return std::move(page).Finish();
}

}  // namespace mgc
