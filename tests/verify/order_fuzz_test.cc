// Order and Memory on plans damaged at random: whatever CheckPlan lets pass gets an answer.

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/testing/odd_plan.h"
#include "graph/verify/memory/memory.h"
#include "graph/verify/order/order.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 20240607;
constexpr int kMutants = 4000;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to three changes.
  void Change(Plan* plan) {
    for (uint64_t i = 1 + Draw(3); i > 0; --i) {
      PlanClass& c = Pick(&plan->classes);
      Program& program = Draw(4) == 0 ? c.eval : c.train;
      switch (Draw(6)) {
        case 0:
          if (!program.compute.empty()) ChangeAction(*plan, &program);
          break;
        case 1:
        case 2:
          if (!program.transfers.empty()) ChangeTransfer(*plan, &program);
          break;
        case 3:
          ChangeSegment(&Pick(&plan->segments));
          break;
        case 4:
          ChangeCall(*plan, &c);
          break;
        default:
          ChangeNumbers(&c);
      }
    }
  }

  uint64_t Draw(uint64_t n) { return random_() % n; }

 private:
  template <typename List>
  typename List::value_type& Pick(List* list) {
    return (*list)[Draw(list->size())];
  }

  void Shift(int64_t* address) {
    *address = Draw(8) == 0 ? -1 : *address + 64 * (static_cast<int64_t>(Draw(9)) - 4);
  }

  void ChangeAction(const Plan& plan, Program* program) {
    Action& action = Pick(&program->compute);
    switch (Draw(6)) {
      case 0:
        Shift(Draw(2) == 0 ? &action.frame : &action.input);
        break;
      case 1:
        Shift(Draw(2) == 0 ? &action.output : &action.grad_input);
        break;
      case 2:
        if (!action.waits.empty()) action.waits.pop_back();
        break;
      case 3:
        if (!program->transfers.empty()) action.waits.push_back(Pick(&program->transfers).ref);
        break;
      case 4:
        std::swap(action, Pick(&program->compute));
        break;
      default:
        action.ref.micro_batch =
            static_cast<int64_t>(Draw(static_cast<uint64_t>(plan.num_micro_batches)));
    }
  }

  void ChangeTransfer(const Plan& plan, Program* program) {
    Transfer& transfer = Pick(&program->transfers);
    switch (Draw(7)) {
      case 0:
        Shift(&transfer.address);
        break;
      case 1:
        transfer.issued = static_cast<int>(Draw(12));
        break;
      case 2:
        transfer.anchor = Pick(&program->compute).ref;
        break;
      case 3:
        transfer.after.clear();
        break;
      case 4:
        transfer.after.push_back(Pick(&program->compute).ref);
        break;
      case 5:
        transfer.after_transfers.push_back(program->transfers[0].ref);
        break;
      default:
        std::swap(transfer, Pick(&program->transfers));
    }
    transfer.peer = std::min(transfer.peer, static_cast<int>(plan.classes.size()) - 1);
  }

  void ChangeSegment(Segment* segment) {
    if (segment->slots.empty() || segment->instrs.empty()) return;
    Slot& slot = Pick(&segment->slots);
    const uint64_t way = Draw(5);
    if (way == 0) {
      Shift(&slot.offset);
    } else if (way == 1) {
      slot.formal = static_cast<int>(Draw(segment->formals.size()));
    } else if (way == 2) {
      slot.bytes += 64;
    } else if (way == 3) {
      std::swap(Pick(&segment->instrs), Pick(&segment->instrs));
    } else {
      std::swap(segment->formals[Draw(segment->formals.size())],
                segment->formals[Draw(segment->formals.size())]);
    }
  }

  void ChangeCall(const Plan& plan, PlanClass* c) {
    Chunk& chunk = Pick(&c->chunks);
    std::vector<Call>* const lists[] = {&chunk.prepare,       &chunk.forward, &chunk.backward,
                                        &chunk.last_backward, &c->update,     &c->eval_update};
    std::vector<Call>& calls = *lists[Draw(6)];
    if (calls.empty()) return;
    Call& call = Pick(&calls);
    switch (Draw(5)) {
      case 4:
        call.running = static_cast<int>(Draw(6)) - 1;
        break;
      case 0:
        Shift(&Pick(&call.bindings).offset);
        break;
      case 1:
        Pick(&call.bindings).base = static_cast<BaseKind>(Draw(6));
        break;
      case 2:
        call.layer = static_cast<int>(Draw(static_cast<uint64_t>(plan.model.num_layers()) + 3)) - 2;
        break;
      default:
        if (Draw(2) == 0) {
          calls.erase(calls.begin());
        } else {
          calls.push_back(Call(call));
        }
    }
  }

  void ChangeNumbers(PlanClass* c) {
    if (!c->blocks.empty() && Draw(2) == 0) {
      HeldBlock& held = Pick(&c->blocks);
      Shift(Draw(2) == 0 ? &held.param_base : &held.state_base);
    } else if (Draw(2) == 0) {
      Shift(&Pick(&c->chunks).frame_bytes);
    } else {
      Shift(Draw(2) == 0 ? &c->memory.peak : &c->global_bytes);
    }
  }

  std::mt19937_64 random_;
};

TEST(OrderFuzzTest, EveryPlanGetsAnAnswer) {
  SCOPED_TRACE(kSeed);
  std::vector<Plan> plans = {OddPlan()};
  for (const PlanCase& plan_case : TinyPlanCases()) plans.push_back(CompilePlanCase(plan_case));
  Mutator mutator(kSeed);
  int tried = 0;
  int refused = 0;
  for (int i = 0; i < kMutants; ++i) {
    Plan plan = plans[static_cast<size_t>(i) % plans.size()];
    mutator.Change(&plan);
    if (!CheckPlan(plan).ok()) continue;
    ++tried;
    Diagnostics findings;
    CheckOrder(plan, &findings);
    CheckMemory(plan, &findings);
    refused += findings.empty() ? 0 : 1;
  }
  std::cout << tried << " of " << kMutants << " plans pass CheckPlan, " << refused << " refused\n";
  EXPECT_GT(tried, kMutants / 4);
  EXPECT_GT(refused, tried / 2);
}

}  // namespace
}  // namespace mgc
