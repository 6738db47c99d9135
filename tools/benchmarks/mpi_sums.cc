// All-reduces of f32 by MPI, in place, under mpirun: a side of `mgc-bench --compare process-sums`.
//   mpirun -n 2 mpi_sums BYTES SUMS            by MPI_Allreduce, as a program calls it
//   mpirun -n 2 mpi_sums BYTES SUMS --library  as `mgc-run --allreduce mpi` has it done
// The first process speaks as tools/benchmarks/child_side.h says; a step is SUMS sums of BYTES.

#include <mpi/mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/library_flow.h"
#include "runtime/comm/mpi/mpi_all_reduces.h"
#include "runtime/comm/mpi/mpi_link.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/comm/share.h"

namespace {

constexpr useconds_t kNap = 200;  // microseconds

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Whether there is another step. MPI waits by asking in a row, which would take processors from
// those whose turn it is.
bool IsAsked(int rank) {
  int more = 0;
  if (rank == 0) {
    std::string line;
    more = std::getline(std::cin, line) ? 1 : 0;
    MPI_Send(&more, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    return more != 0;
  }
  int is_here = 0;
  while (is_here == 0) {
    MPI_Iprobe(0, 0, MPI_COMM_WORLD, &is_here, MPI_STATUS_IGNORE);
    if (is_here == 0) usleep(kNap);
  }
  MPI_Recv(&more, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return more != 0;
}

// One all-reduce in place by one of the ways.
class Way {
 public:
  virtual ~Way() = default;
  virtual bool Sum(std::vector<float>* buffer) = 0;
};

class Blocking : public Way {
 public:
  bool Sum(std::vector<float>* buffer) override {
    return MPI_Allreduce(MPI_IN_PLACE, buffer->data(), static_cast<int>(buffer->size()), MPI_FLOAT,
                         MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
  }
};

class Library : public Way {
 public:
  explicit Library(mgc::MpiWorld& world) : library_(world), link_(world, {}) {
    route_.stops = {{0, 0, 1}, {1, 1, 2}};
    route_.stop_of = {0, 1};
    route_.mine = world.rank();
  }
  bool Open() {
    const mgc::LibraryGroupKey both = {0, 0, {0, 1}};
    return library_.Open({&both, 1}).ok();
  }
  bool Sum(std::vector<float>* buffer) override {
    exchange_.whole = exchange_.room = static_cast<int64_t>(buffer->size());
    exchange_.piece = {0, 1};
    char* const tile = reinterpret_cast<char*>(buffer->data());
    const std::array<const char*, 2> inputs = {tile, tile};
    const std::array<char*, 2> outputs = {tile, tile};
    const mgc::TiledExchange tiled = {&exchange_, inputs, outputs};
    share_.Begin({&tiled, 1}, route_);
    for (flow_.Begin(share_, link_); !flow_.done();) {
      if (!flow_.Advance()) std::this_thread::yield();
      if (!library_.Poll().ok()) return false;
    }
    return true;
  }

 private:
  mgc::MpiAllReduces library_;
  mgc::MpiLink link_;  // never opened
  mgc::Route route_;
  mgc::Exchange exchange_;
  mgc::Share share_{1};
  mgc::LibraryFlow flow_{&library_};
};

void Step(int rank, long sums, Way& way, std::vector<float>* buffer) {
  const double cpu_begin = CpuSeconds();
  double seconds = 0;
  for (long i = 0; i < sums; ++i) {
    std::fill(buffer->begin(), buffer->end(), static_cast<float>(rank + 1));
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (!way.Sum(buffer)) MPI_Abort(MPI_COMM_WORLD, 1);
    seconds += MPI_Wtime() - begin;
  }
  const double cpu = CpuSeconds() - cpu_begin;
  double slowest = 0, cpu_of_all = 0;
  MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&cpu, &cpu_of_all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%.9f %.9f 0\n", slowest, cpu_of_all);
    std::fflush(stdout);
  }
}

int Run(mgc::MpiWorld& world, Way& way, int64_t bytes, long sums) {
  std::vector<float> buffer(static_cast<size_t>(bytes) / sizeof(float));
  if (world.rank() == 0) {
    std::printf("ready\n");
    std::fflush(stdout);
  }
  while (IsAsked(world.rank())) Step(world.rank(), sums, way, &buffer);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto made = mgc::MpiWorld::Create();
  if (!made.ok()) {
    std::cerr << made.status() << "\n";
    return 1;
  }
  mgc::MpiWorld& world = **made;
  const bool by_library = argc == 4 && std::string(argv[3]) == "--library";
  int code = 2;
  if ((argc != 3 && !by_library) || world.size() != 2) {
    if (world.rank() == 0) std::cerr << "usage: mpirun -n 2 mpi_sums BYTES SUMS [--library]\n";
  } else {
    const int64_t bytes = std::strtol(argv[1], nullptr, 10);
    const long sums = std::strtol(argv[2], nullptr, 10);
    Blocking blocking;
    Library library(world);
    code = by_library && !library.Open()
               ? 1
               : Run(world, by_library ? static_cast<Way&>(library) : blocking, bytes, sums);
  }
  return world.Finalize().ok() ? code : 1;
}
