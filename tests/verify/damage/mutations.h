// Ways to damage a plan, for the proof that the verifier sees all of them.
//
// A kind of mutation changes one thing in one place, chosen by dice. Most mutants still pass
// CheckPlan, and many keep every sharding consistent: what a bug of a compiler would look like.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MUTATIONS_H_
#define MGC_TESTS_VERIFY_DAMAGE_MUTATIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/verify/damage/mutation_sites.h"

namespace mgc {

struct MutationKind {
  std::string name;  // fit for a table
  // Damages the plan and says where. False when the plan has nothing to damage in this way, or the
  // dice found nothing; the plan is then of no more use.
  std::function<bool(Plan* plan, Dice* dice, std::string* what)> damage;
  // Of kinds that aim at one thing that a proof once did not see: which one of kHoles, from 1.
  int hole = 0;
};

// What proofs did not see before the third version of the verifier (docs/verify.md, How it is
// tested), in the order of MutationKind::hole.
inline constexpr const char* kHoles[] = {
    "attributes that act through a size",
    "constants wrong by a number that one field takes for one",
    "collectives in place",
    "constants that are no numbers",
    "owners of tied parameters",
    "scratch that is stated and not used",
    "numbers that a user is told",
    "the middle of long steps",
};

// By family, each in a file of its own.
std::vector<MutationKind> SharedMutations();      // sums of copies: not made, over other classes
std::vector<MutationKind> CollectiveMutations();  // dropped, doubled, moved, over the wrong axis
std::vector<MutationKind> ShardingMutations();    // shardings of slots
std::vector<MutationKind> SlotMutations();        // operands, results, offsets behind formals
std::vector<MutationKind> InstrMutations();       // instructions dropped, repeated, replaced
std::vector<MutationKind> AttributeMutations();   // constants, keys, names of inputs
std::vector<MutationKind> ListMutations();        // actions and calls
std::vector<MutationKind> TransferMutations();   // order, anchors, waits and addresses of transfers
std::vector<MutationKind> MemoryMutations();     // frames, rings, ranges, stated sizes
std::vector<MutationKind> OverlapMutations();    // memory used twice, everybody moved along
std::vector<MutationKind> ParameterMutations();  // entries, bases, scalars, reports
std::vector<MutationKind> ConstantMutations();   // holes 1, 2 and 4
std::vector<MutationKind> InPlaceMutations();    // hole 3
std::vector<MutationKind> StatedMutations();     // holes 5, 6 and 7
std::vector<MutationKind> LeftOutMutations();    // hole 8
std::vector<MutationKind> ContextMutations();    // gathers of keys and values, and their gradients

// One of each kind and plan of mutation_test are more than so many. The pages say so
// (tests/docs/counts_test.cc compares them).
inline constexpr int kLeastMutants = 2000;

// All of them. Wrong roots have no kind: no collective of ours has a root.
std::vector<MutationKind> AllMutations();

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MUTATIONS_H_
