#include "runtime/train/checkpoints.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/units.h"

namespace mgc {
namespace {

constexpr double kNsPerSecond = 1e9;

// The steps that a run may go on from, the first to be tried first.
absl::StatusOr<std::vector<int64_t>> StepsToTry(const std::string& dir,
                                                const CheckpointOptions& options) {
  MGC_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListSteps(dir));
  if (steps.empty() && (options.at_step.has_value() || !options.load_dir.empty())) {
    return absl::NotFoundError(absl::StrCat("there is no checkpoint in ", EscapeBytes(dir)));
  }
  if (!options.at_step.has_value()) return steps;
  for (int64_t step : steps) {
    if (step == *options.at_step) return std::vector<int64_t>{step};
  }
  return absl::NotFoundError(absl::StrCat("there is no checkpoint of step ", *options.at_step,
                                          " in ", EscapeBytes(dir), "; there is one of step ",
                                          absl::StrJoin(steps, ", ")));
}

// What the processes of this host need, of which this one needs `bytes`: they share its memory.
absl::StatusOr<int64_t> BytesOnHost(int64_t bytes, Team& team) {
  const std::string host = HostName();
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       team.Gather(absl::StrCat(bytes, " ", host)));
  int64_t sum = 0;
  for (const std::string& text : all) {
    const std::pair<std::string, std::string> told = absl::StrSplit(text, absl::MaxSplits(' ', 1));
    int64_t theirs = 0;
    if (!absl::SimpleAtoi(told.first, &theirs)) {
      return absl::InternalError("a process does not say what it writes");
    }
    if (told.second == host) sum += theirs;
  }
  return sum;
}

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status) || absl::IsNotFound(status);
}

}  // namespace

absl::Status Checkpoints::Open() {
  Team& team = trainer_.executor().team();
  saved_ns_ = NowNs();
  if (saves()) {
    absl::Status opened;
    if (team.is_lead()) {
      absl::StatusOr<std::unique_ptr<CheckpointDir>> dir = CheckpointDir::Open(options_.save_dir);
      opened = dir.status();
      if (dir.ok()) dir_ = *std::move(dir);
    }
    MGC_RETURN_IF_ERROR(team.Agree(opened));
  }
  if (options_.resume) MGC_RETURN_IF_ERROR(Resume());
  return saves() && options_.copies ? MakeRoom() : absl::OkStatus();
}

absl::Status Checkpoints::Resume() {
  const std::string& dir = options_.load_dir.empty() ? options_.save_dir : options_.load_dir;
  if (dir.empty()) return absl::OkStatus();
  Team& team = trainer_.executor().team();
  absl::StatusOr<std::vector<int64_t>> steps = std::vector<int64_t>();
  if (team.is_lead()) steps = StepsToTry(dir, options_);
  MGC_RETURN_IF_ERROR(team.Agree(steps.status()));
  MGC_ASSIGN_OR_RETURN(const std::string told, team.TakeFromLead(absl::StrJoin(*steps, " ")));
  absl::Status last;
  for (absl::string_view text : absl::StrSplit(told, ' ', absl::SkipEmpty())) {
    int64_t step = 0;
    if (!absl::SimpleAtoi(text, &step))
      return absl::InternalError("the first process says no step");
    last = Load(dir, step);
    if (!IsDamage(last)) return last;
    if (!options_.at_step.has_value()) {
      note_(absl::StrCat(last.message(), "; the checkpoint of step ", step, " is passed over"));
    }
  }
  return last;
}

absl::Status Checkpoints::Load(const std::string& dir, int64_t step) {
  const int64_t begin = NowNs();
  MGC_ASSIGN_OR_RETURN(const Resumed resumed,
                       trainer_.Resume(absl::StrCat(dir, "/", StepName(step))));
  if (options_.tell_changes) {
    for (const std::string& change : resumed.changes) note_(change);
  }
  note_(absl::StrFormat("goes on from step %d, sample %d, of %s: %s read in %.0f ms",
                        trainer_.steps_done(), trainer_.samples_done(), EscapeBytes(dir),
                        BytesText(resumed.bytes), static_cast<double>(NowNs() - begin) / 1e6));
  // Of a checkpoint elsewhere there is none here yet.
  if (dir == options_.save_dir) saved_step_ = trainer_.steps_done();
  return absl::OkStatus();
}

bool Checkpoints::IsDue() const {
  if (!saves()) return false;
  const int64_t step = trainer_.steps_done();
  if (options_.interval > 0 && step % options_.interval == 0) return true;
  const double since = static_cast<double>(NowNs() - saved_ns_) / kNsPerSecond;
  return options_.seconds > 0 && since >= options_.seconds;
}

Checkpoints::~Checkpoints() {
  if (writer_.joinable()) writer_.join();
}

absl::Status Checkpoints::Save(bool in_background) {
  MGC_RETURN_IF_ERROR(Settle());
  if (!saves() || saved_step_ == trainer_.steps_done()) return absl::OkStatus();
  const int64_t begin = NowNs();
  MGC_ASSIGN_OR_RETURN(pending_, trainer_.BeginSave(dir_.get(), options_.version));
  saved_step_ = pending_->step();
  saved_ns_ = begin;
  written_ = false;
  copied_ = false;
  const bool behind = in_background && options_.in_background;
  if (behind && room_.has_value()) TakeCopy();
  if (behind) WriteInBackground();
  stall_ns_ += NowNs() - begin;
  return behind ? absl::OkStatus() : Settle();
}

void Checkpoints::TakeCopy() {
  const auto values = static_cast<size_t>(room_->size()) / sizeof(float);
  pending_->Copy(trainer_.executor().workers(),
                 absl::MakeSpan(reinterpret_cast<float*>(room_->data()), values));
  copied_ = true;
}

// Memory for what this process writes, if all have it; else none, and a note.
absl::Status Checkpoints::MakeRoom() {
  Executor& executor = trainer_.executor();
  Team& team = executor.team();
  MGC_ASSIGN_OR_RETURN(const int64_t values, WrittenHere(executor));
  const int64_t bytes = values * static_cast<int64_t>(sizeof(float));
  MGC_ASSIGN_OR_RETURN(const int64_t on_host, BytesOnHost(bytes, team));
  // Nobody takes any before all have looked.
  absl::Status room =
      team.Agree(CheckMemory(on_host, options_.host ? options_.host() : ReadHost()));
  if (room.ok()) {
    absl::StatusOr<Arena> made = Arena::Create(bytes, executor.workers());
    room = team.Agree(made.status());
    if (room.ok()) room_.emplace(*std::move(made));
  }
  if (!absl::IsResourceExhausted(room)) return room;
  note_(absl::StrCat("checkpoints are written without a copy: ", room.message()));
  return absl::OkStatus();
}

void Checkpoints::WriteInBackground() {
  Executor& executor = trainer_.executor();
  const bool holds = !copied_;
  if (holds) executor.HoldUpdates();
  try {
    writer_ = std::thread([this, &executor, holds] {
      Write([this, &executor, holds] {
        if (holds) {
          executor.KeepHolding();
        } else {
          ++signs_;
        }
      });
      if (holds) executor.LetUpdates();
    });
  } catch (const std::system_error&) {
    if (holds) executor.LetUpdates();
    Write([&executor] { executor.team().ComesOn(); });  // then at once
  }
}

void Checkpoints::Write(absl::FunctionRef<void()> comes_on) {
  const int64_t begin = NowNs();
  pending_->Write(comes_on);
  wrote_ns_ = NowNs() - begin;
  written_ = true;
}

// As the writer comes on, so does this process, which others may wait for.
void Checkpoints::AwaitWriter() {
  constexpr auto kLook = std::chrono::milliseconds(1);
  int64_t seen = signs_;
  while (!written_) {
    std::this_thread::sleep_for(kLook);
    const int64_t signs = signs_;
    if (signs != seen) trainer_.executor().team().ComesOn();
    seen = signs;
  }
  writer_.join();
}

absl::Status Checkpoints::SettleWritten() {
  if (pending_ == nullptr || !copied_) return Settle();
  const char* const mine = written_ ? "written" : "";
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, trainer_.executor().team().Gather(mine));
  const bool waits =
      std::any_of(all.begin(), all.end(), [](const std::string& theirs) { return theirs.empty(); });
  return waits ? absl::OkStatus() : Settle();
}

absl::Status Checkpoints::Settle() {
  if (pending_ == nullptr) return absl::OkStatus();
  const int64_t begin = NowNs();
  Executor& executor = trainer_.executor();
  if (writer_.joinable()) {
    AwaitWriter();
    if (!copied_) stall_ns_ += executor.held_ns();
  } else if (!written_) {
    Write([&executor] { executor.team().ComesOn(); });
  }
  absl::Status ended = End();
  pending_.reset();
  stall_ns_ += NowNs() - begin;
  return ended;
}

absl::Status Checkpoints::End() {
  const int64_t step = pending_->step();
  const int64_t begin = NowNs();
  MGC_ASSIGN_OR_RETURN(const std::string folder, pending_->End());
  note_(absl::StrFormat("saved %s in %.0f ms", EscapeBytes(folder),
                        static_cast<double>(wrote_ns_ + NowNs() - begin) / 1e6));
  if (options_.keep == 0) return absl::OkStatus();
  return trainer_.executor().team().Agree(dir_ == nullptr ? absl::OkStatus()
                                                          : dir_->Prune(step, options_.keep));
}

}  // namespace mgc
