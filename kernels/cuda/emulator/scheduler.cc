#include "kernels/cuda/emulator/scheduler.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "kernels/cuda/emulator/fault.h"

namespace mgc::cuda::emulator {
namespace {

constexpr uint64_t kNewPreferenceOneIn = 16;  // items
constexpr size_t kMostAccesses = 4096;        // that an order is looked for to

void Join(const Clock& from, Clock* into) {
  for (const auto& [track, at] : from) {
    uint64_t& known = (*into)[track];
    known = std::max(known, at);
  }
}

bool Reaches(const Clock& clock, int64_t track, uint64_t at) {
  const auto found = clock.find(track);
  return found != clock.end() && found->second >= at;
}

bool Overlap(const Range& a, const Range& b) { return a.begin() < b.end() && b.begin() < a.end(); }

}  // namespace

void Scheduler::Seed(uint64_t seed) {
  dice_.seed(seed);
  for (const std::weak_ptr<Track>& track : tracks_) {
    if (const auto held = track.lock()) held->preference = dice_();
  }
}

std::shared_ptr<Track> Scheduler::NewTrack(int device) {
  const auto gone = [](const std::weak_ptr<Track>& track) { return track.expired(); };
  tracks_.erase(std::remove_if(tracks_.begin(), tracks_.end(), gone), tracks_.end());
  auto track = std::make_shared<Track>();
  track->device = device;
  track->number = tracks_made_++;
  track->preference = dice_();
  tracks_.push_back(track);
  return track;
}

ItemPtr Scheduler::Issue(Work work, const std::shared_ptr<Track>& track,
                         const std::vector<ItemPtr>& before) {
  auto item = std::make_shared<Item>();
  item->work = std::move(work);
  item->track = track;
  for (const ItemPtr& other : before) {
    if (other == nullptr) continue;
    Join(other->clock, &item->clock);
    if (other->done) continue;
    other->next.push_back(item);
    ++item->waits;
  }
  for (auto at = item->clock.begin(); at != item->clock.end();) {
    at = Reaches(host_, at->first, at->second) ? item->clock.erase(at) : std::next(at);
  }
  item->clock[track->number] = ++track->issued;
  CheckOrder(*item);
  item->number = issued_++;
  pending_[item->number] = item;
  if (item->work.on_host) {
    host_functions_.push_back(item);
    if (!has_host_thread_) std::thread([this] { RunHostFunctions(); }).detach();
    has_host_thread_ = true;
  }
  if (item->waits == 0) ready_.push_back(item);
  changed_.notify_all();
  return item;
}

bool Scheduler::IsKnown(const Access& access, const Clock& clock) const {
  return Reaches(clock, access.track, access.at) || Reaches(host_, access.track, access.at);
}

// Notes what an item uses. Who writes all that another used before, and is ordered behind it, takes
// its place: whoever is ordered behind the one is behind the other.
void Scheduler::CheckOrder(const Item& item) {
  for (const Range& range : item.work.ranges) {
    const auto gone = [&](const Access& a) {
      if (!Overlap(a.range, range)) return false;
      const bool known = IsKnown(a, item.clock);
      if (!known && (a.range.written || range.written)) {
        Fault(Text(item.work.what, range.written ? " writes" : " reads", " bytes that ", a.what,
                   a.range.written ? " writes" : " reads", ", and no event orders the two"));
      }
      return known && range.written && range.begin() <= a.range.begin() &&
             range.end() >= a.range.end();
    };
    accesses_.erase(std::remove_if(accesses_.begin(), accesses_.end(), gone), accesses_.end());
  }
  for (const Range& range : item.work.ranges) {
    accesses_.push_back({range, item.track->number, item.track->issued, item.work.what});
  }
  if (accesses_.size() > kMostAccesses) {
    accesses_.erase(accesses_.begin(), accesses_.begin() + kMostAccesses / 4);
  }
}

void Scheduler::HostKnows(const Item& item) {
  Join(item.clock, &host_);
  const auto gone = [&](const Access& a) { return Reaches(host_, a.track, a.at); };
  accesses_.erase(std::remove_if(accesses_.begin(), accesses_.end(), gone), accesses_.end());
}

// Of what can be done that of the track that is preferred most; null: nothing can.
ItemPtr Scheduler::TakeNext(bool on_host) {
  if (dice_() % kNewPreferenceOneIn == 0 && !ready_.empty()) {
    ready_[dice_() % ready_.size()]->track->preference = dice_();
  }
  auto best = ready_.end();
  for (auto at = ready_.begin(); at != ready_.end(); ++at) {
    if ((*at)->work.on_host && !on_host) continue;
    if (best == ready_.end() || (*at)->track->preference > (*best)->track->preference) best = at;
  }
  if (best == ready_.end()) return nullptr;
  ItemPtr item = std::move(*best);
  ready_.erase(best);
  return item;
}

void Scheduler::Do(Lock* lock, const ItemPtr& item) {
  lock->unlock();
  if (StickyError() == 0 && item->work.run != nullptr) item->work.run();
  lock->lock();
  item->done = true;
  item->ended = std::chrono::steady_clock::now();
  item->work.run = nullptr;
  item->track = nullptr;
  for (const ItemPtr& next : item->next) {
    if (--next->waits == 0) ready_.push_back(next);
  }
  item->next.clear();
  pending_.erase(item->number);
  if (item->work.on_host) {
    host_functions_.erase(std::find(host_functions_.begin(), host_functions_.end(), item));
    HostKnows(*item);
  }
  changed_.notify_all();
}

void Scheduler::Finish(Lock* lock, const ItemPtr& item) {
  if (item == nullptr) return;
  while (!item->done) {
    if (const ItemPtr next = TakeNext(false)) {
      Do(lock, next);
    } else {
      changed_.wait(*lock);  // another thread does what is missing
    }
  }
  HostKnows(*item);
}

void Scheduler::FinishAll(Lock* lock) {
  while (!pending_.empty()) {
    const ItemPtr first = pending_.begin()->second;
    Finish(lock, first);
  }
}

void Scheduler::FinishDevice(Lock* lock, int device) {
  const auto next = [&] {
    const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const auto& entry) {
      return entry.second->track->device == device;
    });
    return found == pending_.end() ? nullptr : found->second;
  };
  while (const ItemPtr item = next()) Finish(lock, item);
}

void Scheduler::Step(Lock* lock) {
  if (const ItemPtr next = TakeNext(false)) Do(lock, next);
}

void Scheduler::RunHostFunctions() {
  Lock lock(*mutex_);
  while (true) {
    const ItemPtr next = host_functions_.empty() ? nullptr : TakeNext(true);
    if (next != nullptr) {
      Do(&lock, next);
    } else {
      changed_.wait(lock);
    }
  }
}

std::string Scheduler::UserOf(const Range& range) const {
  for (const auto& entry : pending_) {
    for (const Range& used : entry.second->work.ranges) {
      if (Overlap(used, range)) return entry.second->work.what;
    }
  }
  return "";
}

}  // namespace mgc::cuda::emulator
