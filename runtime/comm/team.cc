#include "runtime/comm/team.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/comm/communicator.h"

namespace mgc {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kNap = std::chrono::microseconds(50);
constexpr int kRoundTrips = 20;

// Waits until `done`, or until the link has an error.
absl::Status WaitUntil(Link& link, absl::FunctionRef<bool()> done) {
  const auto begin = std::chrono::steady_clock::now();
  while (!done()) {
    MGC_RETURN_IF_ERROR(link.Poll());
    if (std::chrono::steady_clock::now() - begin > kSpin) std::this_thread::sleep_for(kNap);
  }
  return absl::OkStatus();
}

// Strings, one after the other, each behind its length.
void AppendString(absl::string_view bytes, std::string* out) {
  const uint64_t size = bytes.size();
  out->append(reinterpret_cast<const char*>(&size), sizeof(size));
  out->append(bytes.data(), bytes.size());
}

std::vector<std::string> Strings(absl::string_view packed) {
  std::vector<std::string> strings;
  while (packed.size() >= sizeof(uint64_t)) {
    uint64_t size = 0;
    std::memcpy(&size, packed.data(), sizeof(size));
    packed.remove_prefix(sizeof(size));
    strings.emplace_back(packed.substr(0, size));
    packed.remove_prefix(std::min<size_t>(size, packed.size()));
  }
  return strings;
}

}  // namespace

int Team::self() const { return communicator_ == nullptr ? 0 : communicator_->self(); }

int Team::size() const { return communicator_ == nullptr ? 1 : communicator_->map().processes(); }

absl::StatusOr<std::vector<std::string>> Team::Gather(absl::string_view mine) {
  if (size() == 1) return std::vector<std::string>{std::string(mine)};
  if (on_wait_) on_wait_(true);
  absl::StatusOr<std::vector<std::string>> all = GatherUnseen(mine);
  if (on_wait_) on_wait_(false);
  return all;
}

absl::StatusOr<std::vector<std::string>> Team::GatherUnseen(absl::string_view mine) {
  if (!is_lead()) {
    MGC_RETURN_IF_ERROR(Send(0, mine));
    MGC_ASSIGN_OR_RETURN(const std::string all, Receive(0));
    return Strings(all);
  }
  std::string all;
  AppendString(mine, &all);
  for (int process = 1; process < size(); ++process) {
    MGC_ASSIGN_OR_RETURN(const std::string theirs, Receive(process));
    AppendString(theirs, &all);
  }
  for (int process = 1; process < size(); ++process) MGC_RETURN_IF_ERROR(Send(process, all));
  return Strings(all);
}

absl::StatusOr<std::string> Team::TakeFromLead(absl::string_view given) {
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       Gather(is_lead() ? given : absl::string_view()));
  return all[0];
}

absl::Status Team::Agree(const absl::Status& mine) {
  std::string report;
  if (!mine.ok()) report = absl::StrCat(static_cast<int>(mine.code()), " ", mine.message());
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, Gather(report));
  for (size_t process = 0; process < all.size(); ++process) {
    if (all[process].empty()) continue;
    if (static_cast<int>(process) == self()) return mine;
    const size_t blank = all[process].find(' ');
    const auto code = static_cast<absl::StatusCode>(std::stoi(all[process].substr(0, blank)));
    return {code, absl::StrCat("process ", process, ": ", all[process].substr(blank + 1))};
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Team::ClockAhead(absl::FunctionRef<int64_t()> now_ns) {
  if (size() == 1) return 0;
  if (on_wait_) on_wait_(true);
  const absl::StatusOr<int64_t> ahead = ClockAheadUnseen(now_ns);
  if (on_wait_) on_wait_(false);
  return ahead;
}

// Each other process asks the first one for its time, which it has read half a round trip ago.
absl::StatusOr<int64_t> Team::ClockAheadUnseen(absl::FunctionRef<int64_t()> now_ns) {
  if (is_lead()) {
    for (int process = 1; process < size(); ++process) {
      for (int round = 0; round < kRoundTrips; ++round) {
        MGC_RETURN_IF_ERROR(Receive(process).status());
        MGC_RETURN_IF_ERROR(Send(process, absl::StrCat(now_ns())));
      }
    }
    return 0;
  }
  int64_t shortest = std::numeric_limits<int64_t>::max();
  int64_t ahead = 0;
  for (int round = 0; round < kRoundTrips; ++round) {
    const int64_t begin = now_ns();
    MGC_RETURN_IF_ERROR(Send(0, ""));
    MGC_ASSIGN_OR_RETURN(const std::string told, Receive(0));
    const int64_t trip = now_ns() - begin;
    int64_t theirs = 0;
    if (!absl::SimpleAtoi(told, &theirs)) {
      return absl::InternalError("the first process does not tell the time");
    }
    if (trip >= shortest) continue;
    shortest = trip;
    ahead = begin + trip / 2 - theirs;
  }
  return std::abs(ahead) <= shortest / 2 + 1 ? 0 : ahead;
}

// A length, then the bytes in as many messages as they need.
absl::Status Team::Send(int to, absl::string_view bytes) {
  Link& link = communicator_->link();
  Sender& sender = link.sender(communicator_->routes().ControlChannel(self(), to));
  std::string whole;
  AppendString(bytes, &whole);
  for (size_t at = 0; at < whole.size(); at += kMessageBytes) {
    char* room = nullptr;
    MGC_RETURN_IF_ERROR(WaitUntil(link, [&] { return (room = sender.Room()) != nullptr; }));
    const size_t part = std::min(whole.size() - at, static_cast<size_t>(kMessageBytes));
    std::copy_n(whole.data() + at, part, room);
    sender.Send(static_cast<int64_t>(part));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Team::Receive(int from) {
  Link& link = communicator_->link();
  Receiver& receiver = link.receiver(communicator_->routes().ControlChannel(from, self()));
  std::string whole;
  uint64_t size = 0;
  do {
    absl::Span<const char> message;
    MGC_RETURN_IF_ERROR(WaitUntil(link, [&] { return !(message = receiver.Message()).empty(); }));
    whole.append(message.data(), message.size());
    receiver.Release();
    std::memcpy(&size, whole.data(), sizeof(size));
  } while (whole.size() - sizeof(size) < size);
  return whole.substr(sizeof(size));
}

}  // namespace mgc
