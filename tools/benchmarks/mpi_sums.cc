// All-reduces of f32 by MPI, in place, under mpirun: a side of `mgc-bench --compare process-sums`.
//   mpirun -n 2 mpi_sums BYTES SUMS
// The first process speaks as tools/benchmarks/child_side.h says; a step is SUMS sums of BYTES.

#include <mpi/mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

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

void Step(int rank, long sums, std::vector<float>* buffer) {
  const double cpu_begin = CpuSeconds();
  double seconds = 0;
  for (long i = 0; i < sums; ++i) {
    std::fill(buffer->begin(), buffer->end(), static_cast<float>(rank + 1));
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, buffer->data(), static_cast<int>(buffer->size()), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
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

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || size != 2) {
    if (rank == 0) std::cerr << "usage: mpirun -n 2 mpi_sums BYTES SUMS\n";
    MPI_Finalize();
    return 2;
  }
  std::vector<float> buffer(std::strtoul(argv[1], nullptr, 10) / sizeof(float));
  const long sums = std::strtol(argv[2], nullptr, 10);
  if (rank == 0) {
    std::printf("ready\n");
    std::fflush(stdout);
  }
  while (IsAsked(rank)) Step(rank, sums, &buffer);
  MPI_Finalize();
  return 0;
}
