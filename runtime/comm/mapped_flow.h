// A large collective between processes that have each other's arenas in reach: nothing is sent.
//
// Every process tells the others where its members' tiles lie, which also says that these stand at
// the collective. When it knows of all it runs its part of the cells, reading and writing tiles
// wherever they lie, as threads of one process do; then it says so, and the collective has ended
// when all have. So nothing is written into a rank that does not stand there, and nobody goes on
// while a tile of his is read.

#ifndef MGC_RUNTIME_COMM_MAPPED_FLOW_H_
#define MGC_RUNTIME_COMM_MAPPED_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/parallel.h"
#include "runtime/comm/flow.h"
#include "runtime/comm/shared_regions.h"
#include "runtime/comm/stream.h"

namespace mgc {

class MappedFlow : public Flow {
 public:
  // Of up to so many exchanges, processes and members in all; the tiles of each lie in its
  // process's region. `bases` must outlive the flow, as must `parallel`, whose threads share this
  // process's part.
  MappedFlow(size_t parts, size_t stops, size_t members, const RegionBases& bases,
             Parallel& parallel);

  // Whether all processes of a route have their regions among `bases`. All of them say the same.
  static bool Serves(const Route& route, const RegionBases& bases);

  void Begin(const Share& share, Link& link) override;
  bool Advance() override;
  bool done() const override { return at_ == At::kEnd; }
  int waits_for() const override { return static_cast<int>(stop_); }

 private:
  enum class At : uint8_t { kTelling, kHearing, kWorking, kSayingSo, kWaiting, kEnd };

  // Each goes on where it was, with the stop or the part that is next; false when it lacks a
  // message or room.
  bool Tell();
  bool Hear();
  bool Work();
  bool SayDone();
  bool Wait();
  // Goes on to the next stop but this process's own, or behind the last.
  void StepOn();
  void GoOn(At next);
  void HearPart(size_t part, const char* from);
  char* BaseOf(size_t stop) const;

  const RegionBases& bases_;
  Parallel& parallel_;
  const Share* share_ = nullptr;
  At at_ = At::kEnd;
  size_t stop_ = 0;
  size_t part_ = 0;
  std::vector<PieceWriter> writers_;  // by stop
  std::vector<PieceReader> readers_;
  std::vector<const char*> inputs_;  // [part][member], of all
  std::vector<char*> outputs_;
  std::vector<TiledExchange> exchanges_;
  int64_t next_ = 0;  // cell of this process's part
  int64_t end_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MAPPED_FLOW_H_
