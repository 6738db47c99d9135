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

#include "runtime/comm/flow.h"
#include "runtime/comm/stream.h"

namespace mgc {

class MappedFlow : public Flow {
 public:
  // The tiles of each process lie in its region. `means` must outlive the flow.
  MappedFlow(const FlowRoom& room, const FlowMeans& means);

  // Whether all processes of a route have their regions among `arenas`. All of them say the same,
  // also of what follows.
  static bool Reaches(const Route& route, const RegionBases& arenas);
  // Whether moreover all that a process tells of its tiles fits in a channel: nobody takes any of
  // it before he has told his own.
  static bool Serves(const Share& share, const RegionBases& arenas);

  void Begin(const Share& share, Link& link) override;
  bool Advance() override;
  bool done() const override { return at_ == At::kEnd; }

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

  const FlowMeans& means_;
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
