// mgc-status: what a run is at, or was at when it ended.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "runtime/run/trace.h"
#include "runtime/watch/board.h"
#include "runtime/watch/waits.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/plan_file.h"
#include "tools/launch/run_memory.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-status";

struct StatusFlags {
  std::vector<std::string> folders;
  bool json = false;
};

CommandText About() {
  return {
      kCommand,
      "DIR",
      "what the ranks of a run are at, that runs or has ended, with --run-dir DIR",
      {"mgc-status run1", "mgc-status --json run1"},
      "One line a process and a rank: step, action, instruction, and whom it waits for. What is "
      "told of\nother hosts is up to a quarter of a second old. It stops nothing."};
}

// When the board was last written on: time stands still for a run that has ended.
int64_t LastHeard(const Board& board) {
  int64_t last = 0;
  for (int p = 0; p < board.num_processes(); ++p) {
    last = std::max(last, board.process(p).heartbeat_ns.get());
  }
  return last;
}

std::string AsJson(const Board& board, const Waits& waits, int64_t now) {
  JsonWriter json(JsonStyle::kSpaced);
  json.BeginObject().Integer("schema_version", 1);
  json.Key("ranks").BeginArray();
  for (int64_t rank = 0; rank < board.num_ranks(); ++rank) {
    const int process = board.ProcessOf(rank);
    json.BeginObject().Integer("rank", rank).Integer("process", process);
    json.Integer("pid", board.process(process).pid.get());
    json.Integer("step", board.ranks()[static_cast<size_t>(rank)].steps.get());
    json.String("state", waits.StateOf(rank, now)).EndObject();
  }
  json.EndArray();
  if (const auto end = board.end()) json.String("ended_by", std::string(end->status.message()));
  json.EndObject();
  return std::move(json).Text();
}

absl::StatusOr<std::string> StatusText(const std::string& folder, bool as_json) {
  MGC_ASSIGN_OR_RETURN(const SharedMemory memory, SharedMemory::Open(BoardPath(folder), true));
  absl::StatusOr<Board> board = Board::Read(memory.data(), memory.bytes());
  MGC_RETURN_IF_ERROR(Annotate(board.status(), EscapeBytes(BoardPath(folder))));
  MGC_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(PlanPath(folder)));
  MGC_RETURN_IF_ERROR(Annotate(CheckPlanToRun(plan), EscapeBytes(PlanPath(folder))));
  if (plan.mesh.world_size() != board->num_ranks()) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(folder), ": the board is of ",
                                                   board->num_ranks(), " ranks, the plan of ",
                                                   plan.mesh.world_size()));
  }
  const Waits waits(plan, *board);
  const int64_t now = LastHeard(*board);
  if (as_json) return absl::StrCat(AsJson(*board, waits, now), "\n");
  std::string text = waits.Table(now);
  if (const auto end = board->end()) {
    absl::StrAppend(&text, "ended before its time: ", end->status.message(), "\n");
  }
  return text;
}

int Main(const Words& arguments) {
  Flags parser(About());
  StatusFlags flags;
  parser.Arguments(1, 1, &flags.folders);
  parser.Switch("--json", "as one JSON object", &flags.json);
  if (const auto code = ParseStrictly(&parser, arguments, kCommand)) return *code;
  const absl::StatusOr<std::string> text = StatusText(flags.folders[0], flags.json);
  return text.ok() ? Finish(*text) : Fail(text.status(), kExitBadModel);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
