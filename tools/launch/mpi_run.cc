#include "tools/launch/mpi_run.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/link.h"
#include "runtime/comm/memfd_regions.h"
#include "runtime/comm/mixed_link.h"
#include "runtime/comm/mpi/mpi_all_reduces.h"
#include "runtime/comm/mpi/mpi_link.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/comm/shared_link.h"
#include "runtime/run/host.h"
#include "runtime/run/trace.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"
#include "tools/launch/captured_output.h"
#include "tools/launch/member.h"
#include "tools/launch/monitor.h"
#include "tools/launch/mpi_watch.h"
#include "tools/launch/run_memory.h"

namespace mgc {
namespace {

constexpr std::chrono::hours kToProve(1);
// The first process says an error that all have, the others give it time to.
constexpr std::chrono::milliseconds kAfterLead(300);

// Prints, and ends all processes.
void EndAll(MpiWorld& mpi, const LastWords& words, const absl::Status& why, int code) {
  // What all find alike is nobody's, and is said by the first one.
  const bool alike = IsAlike(why);
  const auto print = [&] {
    if (alike) {
      Say(words.command(), why.message());
    } else if (IsOfRunning(code)) {
      Say(words.command(), absl::StrCat("process ", mpi.rank(), " (pid ", getpid(), ", ",
                                        HostName(), "): ", why.message()));
    } else {
      Fail(why, code);
    }
  };
  if (mpi.rank() != 0) {
    RunSignals::Obey();  // the launcher, once another one has spoken
    std::this_thread::sleep_for(kAfterLead);
  }
  mpi.rank() != 0 && alike ? words.Log(print) : words.Print(print);
  mpi.Abort(code);
}

// The links to the others and what they stand on, in the order in which they come and go.
struct Links {
  explicit Links(MpiWorld& mpi) : far(mpi, kToPrepare) {}

  std::unique_ptr<MemfdRegions> arenas;
  std::unique_ptr<MemfdRegions> regions;
  std::unique_ptr<SharedLink> near;
  MpiLink far;
  std::unique_ptr<MixedLink> mixed;
  std::unique_ptr<MpiAllReduces> library;  // where it is asked for
};

absl::StatusOr<std::unique_ptr<Links>> MakeLinks(MpiWorld& mpi, const Board& board) {
  auto links = std::make_unique<Links>(mpi);
  const auto gather = [&mpi, board](const std::string& mine) {
    board.SetStage(mpi.rank(), ProcessStage::kAgreeing, NowNs());
    auto all = mpi.Gather(mine, kToPrepare);
    board.SetStage(mpi.rank(), ProcessStage::kStarting, NowNs());
    return all;
  };
  MGC_ASSIGN_OR_RETURN(const std::vector<bool> reachable,
                       MemfdRegions::FindReachable(mpi.rank(), HostName(), gather));
  const auto check = [] { return absl::OkStatus(); };
  links->arenas = std::make_unique<MemfdRegions>(reachable, gather, check);
  links->regions = std::make_unique<MemfdRegions>(reachable, gather, check);
  links->near = std::make_unique<SharedLink>(*links->regions);
  links->mixed = std::make_unique<MixedLink>(reachable, *links->near, links->far);
  return links;
}

// CheckFits of all processes on this host.
absl::Status CheckHost(const Prepared& prepared, const ProcessMap& map,
                       const std::vector<Member>& members, size_t self) {
  std::vector<RankRange> ranks;
  int workers = 0;
  for (size_t p = 0; p < members.size(); ++p) {
    if (members[p].host != members[self].host) continue;
    ranks.push_back(map.RanksOf(static_cast<int>(p)));
    workers += WorkersOf(members, p);
  }
  return CheckFits(*prepared.plan, prepared.kernels_on, ranks, workers);
}

// Tells the others of this process, whose board is in `file`, and enters all of them there. Their
// ranks must fit on this host.
absl::StatusOr<std::vector<Member>> Meet(MpiWorld& mpi, const Prepared& prepared,
                                         const ProcessMap& map, int file, const Board& board) {
  uint64_t key = 0;
  if (getrandom(&key, sizeof(key), 0) != sizeof(key)) {
    return absl::ResourceExhaustedError("the system gives no random number");
  }
  board.SetKey(key);
  MGC_ASSIGN_OR_RETURN(
      const std::vector<std::string> told,
      mpi.Gather(PackMember(OwnMember(file, key, prepared.simd_level)), kToPrepare));
  std::vector<Member> members;
  for (const std::string& text : told) {
    members.push_back(UnpackMember(text));
    board.Enter(static_cast<int>(members.size()) - 1, members.back().pid, members.back().host,
                NowNs());
  }
  MGC_RETURN_IF_ERROR(CheckHost(prepared, map, members, static_cast<size_t>(mpi.rank())));
  return members;
}

// Of processes of this host that come before this one.
int64_t RanksBefore(const ProcessMap& map, const std::vector<Member>& members, size_t self) {
  int64_t ranks = 0;
  for (size_t p = 0; p < self; ++p) {
    if (members[p].host == members[self].host) ranks += map.RanksOf(static_cast<int>(p)).size();
  }
  return ranks;
}

// What is thrown is an error of this process; memory that is missing has ended it before.
int RunBody(const MpiBody& body, World& world) {
  try {
    return body.run(world);
  } catch (const std::exception& error) {
    return EndRun(world, absl::InternalError(error.what()), kExitFailed);
  }
}

// Runs this process's ranks; the exit code. Errors end all processes.
int RunAgreed(MpiWorld& mpi, const RunSignals& signals, const Prepared& prepared,
              const ProcessMap& map, const MpiBody& body) {
  LastWords words(body.command);
  World world;
  const auto end = [&](const absl::Status& why, int code) {
    // One that ends by itself is not missed by its neighbours.
    if (world.board.has_value()) {
      world.board->SetStage(world.self, ProcessStage::kEnded, NowNs());
    }
    EndAll(mpi, words, why, code);
  };
  if (const std::string& run_dir = prepared.options.run_dir; !run_dir.empty() && mpi.rank() != 0) {
    const absl::Status logged = words.LogFrom(run_dir, mpi.rank());
    if (!logged.ok()) end(logged, kExitFailed);
  }
  world.map = map;
  world.self = mpi.rank();
  world.end_run = end;
  const auto memory =
      MakeBoardMemory(*prepared.plan, map, world.is_lead() ? prepared.options.run_dir : "");
  if (!memory.ok()) end(memory.status(), kExitFailed);
  world.board = Board(memory->data(), map);
  const auto members = Meet(mpi, prepared, map, memory->file(), *world.board);
  if (!members.ok()) end(members.status(), kExitFailed);
  world.workers = WorkersOf(*members, static_cast<size_t>(mpi.rank()));
  world.ranks_before = RanksBefore(map, *members, static_cast<size_t>(mpi.rank()));
  world.simd_level = CommonLevel(*members);
  if (const auto note = CommonLevelNote(*members); note.has_value() && world.is_lead()) {
    PrintNotes({*note});
  }
  MpiWatch watch(*prepared.plan, *world.board, mpi.rank(), *members, prepared.options, signals, mpi,
                 words);
  world.on_open = [&watch](Communicator& communicator) { watch.Connect(communicator); };
  world.on_close = [&watch] { watch.Disconnect(); };
  const auto links = MakeLinks(mpi, *world.board);
  if (!links.ok()) end(links.status(), kExitFailed);
  world.link = (*links)->mixed.get();
  world.arenas = (*links)->arenas.get();
  if (prepared.library_all_reduces) {
    (*links)->library = std::make_unique<MpiAllReduces>(mpi);
    world.library = (*links)->library.get();
  }
  const int code = RunBody(body, world);
  world.board->SetStage(world.self, ProcessStage::kEnded, NowNs());
  watch.Stop();
  if (code != kExitOk) return code;
  // All have agreed on that: what is left of the run says so of all.
  for (int p = 0; p < mpi.size(); ++p) world.board->SetStage(p, ProcessStage::kEnded, NowNs());
  return code;
}

// What a process has prepared, as it tells the others: that it can run and on what terms, or its
// exit code and what it has printed.
struct Told {
  bool runs = false;
  int code = kExitFailed;
  std::string text;
};

std::string Pack(const Prepared& prepared, const std::string& printed) {
  if (prepared.plan != nullptr) return absl::StrCat("run\n", PackTerms(prepared.terms));
  return absl::StrCat(prepared.code, "\n", printed);
}

Told UnpackTold(const std::string& packed) {
  const std::vector<std::string> parts = absl::StrSplit(packed, absl::MaxSplits('\n', 1));
  Told told;
  told.runs = parts[0] == "run";
  int code = 0;
  if (absl::SimpleAtoi(parts[0], &code)) told.code = code;
  if (parts.size() > 1) told.text = parts[1];
  return told;
}

// What a command ends with that ends before it runs; nothing where all can run. What the first
// process has to say it has printed already; it says what the first other one has printed.
absl::optional<int> EndBeforeRun(MpiWorld& mpi, const std::vector<Told>& all) {
  for (size_t p = 0; p < all.size(); ++p) {
    if (all[p].runs) continue;
    if (p > 0 && mpi.rank() == 0) {
      std::cerr << "error: process " << p << " ends with " << all[p].code << "; it says:\n"
                << all[p].text;
    }
    return all[p].code;
  }
  return absl::nullopt;
}

// All processes' terms, and which of them runs which ranks; an error is said once.
absl::StatusOr<ProcessMap> Agree(MpiWorld& mpi, const Prepared& prepared,
                                 const std::vector<Told>& all) {
  std::vector<std::string> terms;
  terms.reserve(all.size());
  for (const Told& told : all) terms.push_back(told.text);
  MGC_RETURN_IF_ERROR(CheckTerms(terms));
  const Mesh& mesh = prepared.plan->mesh;
  MGC_ASSIGN_OR_RETURN(ProcessMap map, ProcessMap::Create(mesh.world_size(), mpi.size(),
                                                          prepared.ranks_per_process));
  if (prepared.library_all_reduces) MGC_RETURN_IF_ERROR(CheckLibraryServes(map, mesh));
  return map;
}

// Has the plan proved by the first process; the exit code of that.
int ProveOnce(MpiWorld& mpi, const MpiBody& body) {
  const auto proved =
      mpi.Gather(mpi.rank() == 0 ? absl::StrCat(body.prove()) : std::string(), kToProve);
  if (!proved.ok()) EndAll(mpi, LastWords(body.command), proved.status(), kExitFailed);
  int code = kExitFailed;
  return absl::SimpleAtoi((*proved)[0], &code) ? code : kExitFailed;
}

// Everything between the beginning of MPI and its good end; the exit code.
int RunAsOneOf(MpiWorld& mpi, const RunSignals& signals, const MpiBody& body) {
  absl::optional<CapturedOutput> captured;
  if (mpi.rank() != 0) captured.emplace();
  const Prepared prepared = body.prepare();
  const std::string printed = captured.has_value() ? captured->End() : "";
  const auto packed = mpi.Gather(Pack(prepared, printed), kToPrepare);
  if (!packed.ok()) EndAll(mpi, LastWords(body.command), packed.status(), kExitFailed);
  std::vector<Told> all;
  for (const std::string& text : *packed) all.push_back(UnpackTold(text));
  if (const auto code = EndBeforeRun(mpi, all)) return *code;
  const absl::StatusOr<ProcessMap> map = Agree(mpi, prepared, all);
  if (!map.ok()) {
    if (mpi.rank() == 0) Fail(map.status(), kExitInfeasible);
    return kExitInfeasible;
  }
  const int proved = ProveOnce(mpi, body);
  return proved == kExitOk ? RunAgreed(mpi, signals, prepared, *map, body) : proved;
}

// Lets messages go as they are sent: over TCP Open MPI would first ask the receiver about those of
// runtime/comm/link.h, and each question waits until that one looks after MPI. What users say of it
// holds.
void SendAtOnce() {
  constexpr int kKeep = 0;
  setenv("OMPI_MCA_btl_tcp_eager_limit", absl::StrCat(2 * kMessageBytes).c_str(), kKeep);
}

}  // namespace

int RunUnderMpi(const LaunchedBy& by, const MpiBody& body) {
  const RunSignals signals;  // before MPI starts threads of its own, on which they would be deadly
  SendAtOnce();
  absl::StatusOr<std::unique_ptr<MpiWorld>> made = MpiWorld::Create();
  if (!made.ok()) return Fail(made.status(), kExitFailed);
  MpiWorld& mpi = **made;
  if (mpi.size() != by.size) {
    return Fail(absl::FailedPreconditionError(
                    absl::StrCat(by.launcher, " has started ", by.size, " processes (", by.variable,
                                 "), this program's MPI library sees ", mpi.size(),
                                 ": they are not of one MPI; under Slurm try srun --mpi=pmix")),
                kExitFailed);
  }
  const int code = RunAsOneOf(mpi, signals, body);
  const absl::Status ended = mpi.Finalize();
  return code != kExitOk || ended.ok() ? code : Fail(ended, kExitFailed);
}

}  // namespace mgc
