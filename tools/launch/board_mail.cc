#include "tools/launch/board_mail.h"

#include <algorithm>
#include <cstring>

namespace mgc {
namespace {

// What is told of a process. Times are told as ages: clocks of hosts are not comparable.
struct ProcessNews {
  ProcessStage stage;
  int64_t age_ns;
  int64_t ranks;  // that follow
};

struct RankNews {
  RankActivity activity;
  int64_t age_ns, item_age_ns, moved_age_ns;  // -1: never
  int64_t steps, usual_ns, items_done, busy_ns;
  int32_t action, call, instr, transfer, item_action, item_call, exchange;
  bool eval, inside, at_end, in_flight;
};

constexpr int64_t kMostRanks = (kMessageBytes - static_cast<int64_t>(sizeof(ProcessNews))) /
                               static_cast<int64_t>(sizeof(RankNews));

int64_t AgeOf(int64_t time_ns, int64_t now_ns) {
  return time_ns == 0 ? -1 : std::max<int64_t>(0, now_ns - time_ns);
}

int64_t TimeOf(int64_t age_ns, int64_t now_ns) { return age_ns < 0 ? 0 : now_ns - age_ns; }

RankNews NewsOf(const RankProgress& p, int64_t now_ns) {
  return {p.activity.get(),
          AgeOf(p.since_ns.get(), now_ns),
          AgeOf(p.item_since_ns.get(), now_ns),
          AgeOf(p.moved_ns.get(), now_ns),
          p.steps.get(),
          p.usual_ns.get(),
          p.items_done.get(),
          p.busy_ns.get(),
          p.action.get(),
          p.call.get(),
          p.instr.get(),
          p.transfer.get(),
          p.item_action.get(),
          p.item_call.get(),
          p.exchange.get(),
          p.eval.get(),
          p.inside.get(),
          p.at_end.get(),
          p.in_flight.get()};
}

void Put(const RankNews& news, int64_t now_ns, RankProgress* p) {
  p->activity.set(news.activity);
  p->since_ns.set(TimeOf(news.age_ns, now_ns));
  p->item_since_ns.set(TimeOf(news.item_age_ns, now_ns));
  p->moved_ns.set(TimeOf(news.moved_age_ns, now_ns));
  p->steps.set(news.steps);
  p->usual_ns.set(news.usual_ns);
  p->items_done.set(news.items_done);
  p->busy_ns.set(news.busy_ns);
  p->action.set(news.action);
  p->call.set(news.call);
  p->instr.set(news.instr);
  p->transfer.set(news.transfer);
  p->item_action.set(news.item_action);
  p->item_call.set(news.item_call);
  p->exchange.set(news.exchange);
  p->eval.set(news.eval);
  p->inside.set(news.inside);
  p->at_end.set(news.at_end);
  p->in_flight.set(news.in_flight);
}

}  // namespace

void CopyProcess(const Board& from, int process, const Board& to, int64_t now_ns) {
  const ProcessEntry& entry = from.process(process);
  to.process(process).heartbeat_ns.set(entry.heartbeat_ns.get());
  to.process(process).stage.set(entry.stage.get());
  to.process(process).since_ns.set(entry.since_ns.get());
  const RankRange range = from.RanksOf(process);
  for (int64_t rank = range.begin; rank < range.end; ++rank) {
    const size_t r = static_cast<size_t>(rank);
    Put(NewsOf(from.ranks()[r], now_ns), now_ns, &to.ranks()[r]);
  }
}

void BoardMail::Exchange(int64_t now_ns) {
  const int self = communicator_.self();
  board_.process(self).heartbeat_ns.set(now_ns);
  for (int process = 0; process < board_.num_processes(); ++process) {
    if (process == self || (self != 0 && process != 0)) continue;
    if (is_read_[static_cast<size_t>(process)]) continue;
    SendTo(process, now_ns);
    TakeFrom(process, now_ns);
  }
}

void BoardMail::SendTo(int process, int64_t now_ns) {
  const int self = communicator_.self();
  char* const room =
      communicator_.link().sender(communicator_.routes().WatchChannel(self, process)).Room();
  if (room == nullptr) return;
  const RankRange range = board_.RanksOf(self);
  const ProcessEntry& entry = board_.process(self);
  ProcessNews news = {entry.stage.get(), AgeOf(entry.since_ns.get(), now_ns),
                      self == 0 ? 0 : std::min(range.size(), kMostRanks)};
  std::memcpy(room, &news, sizeof(news));
  char* at = room + sizeof(news);
  for (int64_t rank = 0; rank < news.ranks; ++rank, at += sizeof(RankNews)) {
    const RankNews told = NewsOf(board_.ranks()[static_cast<size_t>(range.begin + rank)], now_ns);
    std::memcpy(at, &told, sizeof(told));
  }
  communicator_.link().sender(communicator_.routes().WatchChannel(self, process)).Send(at - room);
}

void BoardMail::TakeFrom(int process, int64_t now_ns) {
  Receiver& receiver = communicator_.link().receiver(
      communicator_.routes().WatchChannel(process, communicator_.self()));
  for (auto message = receiver.Message(); !message.empty(); message = receiver.Message()) {
    ProcessNews news;
    std::memcpy(&news, message.data(), sizeof(news));
    ProcessEntry& entry = board_.process(process);
    entry.heartbeat_ns.set(now_ns);
    entry.stage.set(news.stage);
    entry.since_ns.set(TimeOf(news.age_ns, now_ns));
    const RankRange range = board_.RanksOf(process);
    const char* at = message.data() + sizeof(news);
    for (int64_t rank = 0; rank < std::min(news.ranks, range.size()); ++rank) {
      RankNews told;
      std::memcpy(&told, at, sizeof(told));
      at += sizeof(told);
      Put(told, now_ns, &board_.ranks()[static_cast<size_t>(range.begin + rank)]);
    }
    receiver.Release();
  }
}

}  // namespace mgc
