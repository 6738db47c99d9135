#include "tools/benchmarks/sums.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "frontends/model_config.h"
#include "graph/base/status.h"
#include "runtime/comm/collective_flow.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/run/arena.h"
#include "runtime/run/workers.h"
#include "tools/benchmarks/process_side.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr int kMembers = 2;
constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kGrain = 1 << 14;  // elements
constexpr int64_t kMostSums = 200;
constexpr int64_t kStepBytes = int64_t{64} << 20;

Exchange SumOf(int64_t bytes) {
  Exchange exchange;
  exchange.whole = exchange.room = bytes / kFloat;
  exchange.piece = {0, 1};
  return exchange;
}

class Sums : public BenchSide {
 public:
  Sums(int64_t bytes, int workers) : exchange_(SumOf(bytes)), workers_(workers, workers) {}

  absl::StatusOr<StepTime> Step() override {
    using Clock = std::chrono::steady_clock;
    const Stopwatch watch;
    Clock::duration summing{};
    for (int64_t i = SumsOfStep(exchange_.whole * kFloat); i > 0; --i) {
      MGC_RETURN_IF_ERROR(Prepare());
      const Clock::time_point begin = Clock::now();
      MGC_RETURN_IF_ERROR(Sum());
      summing += Clock::now() - begin;
    }
    return StepTime{std::chrono::duration<double>(summing).count(), watch.Read().cpu_seconds};
  }

 protected:
  // Gives a member its buffer, in memory that others have or in its own; all before the first step.
  absl::Status Make(int member, char* memory = nullptr) {
    const int64_t bytes = exchange_.whole * kFloat;
    MGC_ASSIGN_OR_RETURN(Arena arena, memory == nullptr ? Arena::Create(bytes, workers_)
                                                        : Arena::CreateIn(memory, bytes, workers_));
    inputs_[member] = outputs_[member] = arena.data();
    arenas_.push_back(std::move(arena));
    return absl::OkStatus();
  }
  void Write(int member, int64_t begin, int64_t end) {
    float* const to = reinterpret_cast<float*>(outputs_[member]);
    std::fill(to + begin, to + end, static_cast<float>(member + 1));
  }
  TiledExchange tiled() const { return {&exchange_, inputs_, outputs_}; }

  virtual absl::Status Prepare() = 0;
  virtual absl::Status Sum() = 0;

  const Exchange exchange_;
  Workers workers_;
  std::vector<Arena> arenas_;
  std::array<const char*, kMembers> inputs_ = {};
  std::array<char*, kMembers> outputs_ = {};
};

class ThreadSums : public Sums {
 public:
  using Sums::Sums;
  absl::Status Open() {
    for (int member = 0; member < kMembers; ++member) MGC_RETURN_IF_ERROR(Make(member));
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare() override {
    for (int member = 0; member < kMembers; ++member) {
      workers_.For(exchange_.whole, kGrain,
                   [&](int64_t begin, int64_t end) { Write(member, begin, end); });
    }
    return absl::OkStatus();
  }
  absl::Status Sum() override {
    const TiledExchange all = tiled();
    return RunExchanges({&all, 1}, workers_);
  }
};

// As StepMachine, which has a worker look after a flow when it has nothing else to do.
class ProcessSums : public Sums, private TaskSource {
 public:
  ProcessSums(int64_t bytes, const World& world)
      : Sums(bytes, 1), self_(world.self), link_(*world.link), regions_(*world.arenas) {}

  absl::Status Open() {
    std::vector<ChannelKey> channels;
    for (ChannelKind kind : {ChannelKind::kControl, ChannelKind::kLine, ChannelKind::kDirect}) {
      channels.push_back({0, 1, kind});
      channels.push_back({1, 0, kind});
    }
    std::sort(channels.begin(), channels.end());
    MGC_RETURN_IF_ERROR(link_.Open(channels, self_));
    const auto find = [&](ChannelKind kind, bool sends) {
      const int from = sends ? self_ : 1 - self_;
      const ChannelKey key = {from, 1 - from, kind};
      return static_cast<size_t>(std::find(channels.begin(), channels.end(), key) -
                                 channels.begin());
    };
    send_meeting_ = find(ChannelKind::kControl, true);
    receive_meeting_ = find(ChannelKind::kControl, false);
    route_.stops = {{0, 0, 1}, {1, 1, 2}};
    route_.stop_of = {0, 1};
    route_.mine = self_;
    route_.to.assign(kMembers, find(ChannelKind::kDirect, true));
    route_.from.assign(kMembers, find(ChannelKind::kDirect, false));
    route_.to_next = route_.to_previous = find(ChannelKind::kLine, true);
    route_.from_next = route_.from_previous = find(ChannelKind::kLine, false);
    if (ReachesOthers(regions_, self_)) {
      MGC_ASSIGN_OR_RETURN(char* const memory, regions_.Make(exchange_.whole * kFloat));
      MGC_RETURN_IF_ERROR(Make(self_, memory));
    } else {
      MGC_RETURN_IF_ERROR(Make(self_));
    }
    MGC_RETURN_IF_ERROR(regions_.Publish());
    MGC_ASSIGN_OR_RETURN(means_.arenas, BasesOf(regions_, self_));
    means_.parallel = &workers_;
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare() override {
    Write(self_, 0, exchange_.whole);
    return Meet();
  }
  // Waits for the other process.
  absl::Status Meet() {
    Sender& sender = link_.sender(send_meeting_);
    Receiver& receiver = link_.receiver(receive_meeting_);
    bool is_sent = false;
    while (receiver.Message().empty() || !is_sent) {
      if (!is_sent && sender.Room() != nullptr) {
        sender.Send(1);
        is_sent = true;
      }
      MGC_RETURN_IF_ERROR(link_.Poll());
    }
    receiver.Release();
    return absl::OkStatus();
  }
  absl::Status Sum() override {
    tiled_ = tiled();
    flow_.Begin({&tiled_, 1}, route_, link_);
    workers_.Run(*this);
    return status_;
  }

  int Next() override { return wants_help() ? kIdle : kOver; }
  void Run(int, int) override {}
  bool wants_help() const override { return status_.ok() && !flow_.done(); }
  bool Help() override {
    status_ = link_.Poll();
    return flow_.Advance();
  }

  const int self_;
  Link& link_;
  SharedRegions& regions_;
  Route route_;
  size_t send_meeting_ = 0, receive_meeting_ = 0;
  TiledExchange tiled_;
  FlowMeans means_;
  CollectiveFlow flow_{{1, kMembers, kMembers}, means_};
  absl::Status status_;
};

}  // namespace

int64_t SumsOfStep(int64_t bytes) { return std::clamp<int64_t>(kStepBytes / bytes, 1, kMostSums); }

absl::StatusOr<std::unique_ptr<BenchSide>> SumsOfThreads(int64_t bytes, int workers) {
  auto sums = std::make_unique<ThreadSums>(bytes, workers);
  MGC_RETURN_IF_ERROR(sums->Open());
  return sums;
}

absl::StatusOr<std::unique_ptr<BenchSide>> SumsOfProcesses(int64_t bytes) {
  // What is launched is a plan; which one it is does not matter.
  MGC_ASSIGN_OR_RETURN(const ModelConfig model, LoadModelPreset("gpt2-tiny"));
  ParallelConfig parallel;
  parallel.world_size = kMembers;
  parallel.micro_batch_size = 1;
  parallel.global_batch_size = kMembers;
  MGC_ASSIGN_OR_RETURN(const Plan plan, CompileModel(model, parallel));
  return ProcessSide::Create("sums", plan,
                             [bytes](World& world) -> absl::StatusOr<std::unique_ptr<BenchSide>> {
                               auto sums = std::make_unique<ProcessSums>(bytes, world);
                               MGC_RETURN_IF_ERROR(sums->Open());
                               return sums;
                             });
}

}  // namespace mgc
