// A virtual fabric over shared memory that keeps signals back and lets them land in random order, seeded; what a
// network may do to writes that no fence orders. Signals land only while their sender does something, and at its end.
#pragma once

#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "core/coll/barrier/signal_fabric.hpp"
#include "tests/unit/core/coll/barrier/team_memory.hpp"

namespace npushmem::barrier::testing {

class ReorderingFabric final : public SignalFabric {
public:
    ReorderingFabric(TeamMemory& memory, int own, std::uint32_t seed)
        : memory_(memory),
          own_(own),
          random_(seed),
          waiter_({.yield_for = std::chrono::milliseconds(4)}, os_, counters_, nullptr, &land_) {}
    ReorderingFabric(const ReorderingFabric&) = delete;
    ReorderingFabric& operator=(const ReorderingFabric&) = delete;
    ~ReorderingFabric() override {
        while (!pending_.empty()) land_one();
    }

    Code signal(int member, int slot, std::uint64_t value) override {
        if (member == own_) {
            // Release: pairs with the acquire load of whoever looks.
            slot_at(memory_.of(own_), slot).store(value, std::memory_order_release);
            return Code::ok;
        }
        pending_.push_back({member, slot, value});
        if (random_() % 2 == 0) land_one();
        return Code::ok;
    }

    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) override {
        // Both: this member's data goes out, the data of those who came before comes in.
        before = slot_at(memory_.of(member), slot).fetch_add(value, std::memory_order_acq_rel);
        return Code::ok;
    }

    Code wait(const AwaitedSlot& awaited, std::uint64_t value) override {
        // Acquire: pairs with the release store in land_one.
        const auto ready = [&] {
            return reached(slot_at(memory_.of(awaited.member), awaited.slot).load(std::memory_order_acquire), value);
        };
        return waiter_.until(ready, {.what = "a signal"});
    }

    Code complete() override {
        while (!pending_.empty()) land_one();
        return Code::ok;
    }

    [[nodiscard]] FabricFailure failure() const override { return {}; }

private:
    struct Pending {
        int member;
        int slot;
        std::uint64_t value;
    };

    void land_one() {
        if (pending_.empty()) return;
        std::swap(pending_[random_() % pending_.size()], pending_.back());
        const Pending one = pending_.back();
        pending_.pop_back();
        // Release: pairs with the acquire load of the waiting member.
        slot_at(memory_.of(one.member), one.slot).store(one.value, std::memory_order_release);
    }

    TeamMemory& memory_;
    int own_;
    std::mt19937 random_;
    std::vector<Pending> pending_;
    std::function<void()> land_ = [this] { land_one(); };
    SystemWaitOs os_;
    WaitCounters counters_;
    Waiter waiter_;
};

}  // namespace npushmem::barrier::testing
