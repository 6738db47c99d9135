#include "runtime/generate/read_result.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/comm/team.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

// The result, and the class that has it.
struct FoundResult {
  const NamedTensor* tensor = nullptr;
  int rank_class = 0;
};

absl::StatusOr<FoundResult> FindResult(const Plan& plan, absl::string_view name) {
  for (const PlanClass& rank_class : plan.classes) {
    for (const NamedTensor& result : rank_class.results) {
      if (result.name != name) continue;
      if (result.type.dtype == DType::kF32) return FoundResult{&result, rank_class.coordinate};
      return absl::InvalidArgumentError(absl::StrCat("the result `", EscapeBytes(name), "` is ",
                                                     result.type.ToString(), ", not of f32"));
    }
  }
  return absl::NotFoundError(
      absl::StrCat("a step of the plan leaves no result `", EscapeBytes(name), "`"));
}

// Runs of values as processes tell them: where each begins, how many there are, and they.
struct RunHead {
  int64_t whole = 0;
  int64_t count = 0;
};

void AppendRun(int64_t whole, absl::Span<const float> values, std::string* out) {
  const RunHead head = {whole, static_cast<int64_t>(values.size())};
  out->append(reinterpret_cast<const char*>(&head), sizeof(head));
  out->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

void PutRuns(absl::string_view runs, std::vector<float>* whole) {
  while (runs.size() >= sizeof(RunHead)) {
    RunHead head;
    std::memcpy(&head, runs.data(), sizeof(head));
    runs.remove_prefix(sizeof(head));
    const size_t bytes = static_cast<size_t>(head.count) * sizeof(float);
    std::memcpy(whole->data() + head.whole, runs.data(), bytes);
    runs.remove_prefix(bytes);
  }
}

}  // namespace

absl::StatusOr<std::vector<float>> ReadResult(const Executor& executor, absl::string_view name) {
  MGC_ASSIGN_OR_RETURN(const FoundResult found, FindResult(executor.steps(), name));
  const HeldTensor held = {found.tensor->name,    &found.tensor->type, &found.tensor->sharding,
                           found.tensor->address, found.rank_class,    /*owner=*/true};
  std::vector<float> whole(static_cast<size_t>(found.tensor->type.NumElements()));
  if (executor.team().size() == 1) {
    ForEachRunHere(executor, held, [&](int64_t begin, absl::Span<float> values) {
      std::copy(values.begin(), values.end(), whole.begin() + begin);
    });
    return whole;
  }
  std::string mine;
  ForEachRunHere(executor, held,
                 [&](int64_t begin, absl::Span<float> values) { AppendRun(begin, values, &mine); });
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, executor.team().Gather(mine));
  for (const std::string& runs : all) PutRuns(runs, &whole);
  return whole;
}

}  // namespace mgc
