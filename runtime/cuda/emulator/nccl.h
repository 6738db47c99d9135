// The part of NCCL that mgc uses, for the emulated device: the same names, types and meanings,
// among ranks that are threads, or places of one thread, of this process, on a device each.
//
// It is stricter than the library. A call, or the end of the outermost group of calls, returns when
// all ranks have issued what it belongs to, and what has to be done then lies in their streams; so
// that ranks which wait for each other are found when they do, and not by a stream that stands
// still. *Faults* (kernels/cuda/emulator/emulator.h) are: calls of which not all ranks come in time
// (NcclPatience); collectives of one number that are not the same on all ranks, or have other
// counts, types or operations; a send and its receive of other sizes; two ranks of a communicator
// on one device; a stream of another device than the communicator's; a group that ends before it
// has begun; buffers that overlap and are not in place; communicators used after they were given
// up, or given up while a call is under way. The first one is kept, and the call returns an error.
//
// Sums are added in the order of a ring, which begins at another rank in each part of a buffer, and
// are rounded after each term.

#ifndef MGC_RUNTIME_CUDA_EMULATOR_NCCL_H_
#define MGC_RUNTIME_CUDA_EMULATOR_NCCL_H_

#include <chrono>
#include <climits>
#include <cstddef>

#include "kernels/cuda/emulator/runtime.h"

extern "C" {

typedef struct ncclComm* ncclComm_t;

enum { NCCL_UNIQUE_ID_BYTES = 128, NCCL_SPLIT_NOCOLOR = -1 };
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
} ncclDataType_t;

typedef struct {
  int blocking;
  int splitShare;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER \
  { INT_MIN, INT_MIN }

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);
}

namespace mgc::cuda::emulator {

// How long calls wait for other ranks; 20 s at first.
void SetNcclPatience(std::chrono::milliseconds patience);
// Communicators that are neither destroyed nor aborted.
int NcclCommunicators();
// Calls of threads' groups that have not ended: at the end of a run none may be left.
int OpenNcclCalls();
// Lets every later call on the communicator's ranks, and what is asked of it, have this error, as
// when a machine is lost; null: those of all communicators.
void BreakNccl(ncclComm_t comm, ncclResult_t error);

}  // namespace mgc::cuda::emulator

#endif  // MGC_RUNTIME_CUDA_EMULATOR_NCCL_H_
