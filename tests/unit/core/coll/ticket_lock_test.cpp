// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/ticket_lock.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "tests/unit/core/base/interleaver.hpp"

namespace npushmem::coll {
namespace {

using npushmem::testing::InterleavedMemory;
using npushmem::testing::InterleavedPrograms;
using npushmem::testing::InterleavedWorld;
using npushmem::testing::Interleavings;
using ::testing::AnyOf;
using ::testing::IsEmpty;

constexpr int next_word = 0;
constexpr int served_word = 1;
constexpr int inside_word = 2;  // how many hold the lock
constexpr int data_word = 3;    // what it protects: everybody who gets in adds one, by a load and a store

struct ExploredLock {
    InterleavedMemory* memory;

    std::uint32_t take_ticket() { return static_cast<std::uint32_t>(memory->add(next_word, 1)); }
    bool try_take_ticket(std::uint32_t ticket) {
        return memory->compare_exchange(next_word, ticket, ticket + 1) == ticket;
    }
    std::uint32_t served() { return static_cast<std::uint32_t>(memory->load(served_word)); }
    void serve_next() { memory->raise(served_word, 1); }
};
static_assert(TicketMemory<ExploredLock>);

template <class Lock>
void hold(InterleavedMemory& memory, Lock& lock) {
    memory.raise(inside_word, 1);
    const std::uint64_t before = memory.load(data_word);
    memory.store(data_word, before + 1);
    memory.raise(inside_word, ~std::uint64_t{0});
    clear_lock(lock);
}

template <class Lock>
void use(InterleavedMemory& memory, int times) {
    Lock lock{&memory};
    for (int i = 0; i < times; ++i) {
        const Code code = set_lock(lock, [&](std::uint32_t ticket) {
            memory.wait_equal(served_word, ticket);
            return Code::ok;
        });
        if (code == Code::ok) hold(memory, lock);
        memory.forget();
    }
}

template <class Lock>
void try_once(InterleavedMemory& memory) {
    Lock lock{&memory};
    if (try_lock(lock)) hold(memory, lock);
}

using Program = std::function<void(InterleavedMemory&)>;

Interleavings explore(const char* what, std::vector<Program> programs) {
    InterleavedPrograms question{.programs = std::move(programs), .words = {0, 0, 0, 0}, .check = {}};
    question.check = [](const InterleavedWorld& world, bool ended) -> std::string {
        if (world.words[inside_word] > 1) return "two hold the lock";
        if (ended && world.words[next_word] != world.words[served_word]) return "somebody still has the lock";
        // Every holder has taken a ticket.
        return ended && world.words[data_word] != world.words[served_word] ? "an update is lost" : "";
    };
    Interleavings result = run_all_interleavings(question);
    std::printf("%s: %zu states%s%s (bound %zu)\n", what, result.states,
                result.fault.empty() ? "" : ", fault: ", result.fault.c_str(), question.bound);
    return result;
}

Program user(int times) {
    return [=](InterleavedMemory& memory) { use<ExploredLock>(memory, times); };
}
const Program trier = [](InterleavedMemory& memory) { try_once<ExploredLock>(memory); };

void expect_sound(const char* what, std::vector<Program> programs) {
    const Interleavings result = explore(what, std::move(programs));
    EXPECT_THAT(result.fault, IsEmpty());
    EXPECT_TRUE(result.complete);
}

TEST(TicketLockExplored, ExcludesOthersAndServesAll) {
    expect_sound("two, three times each", {user(3), user(3)});
    expect_sound("three, twice each", {user(2), user(2), user(2)});
    expect_sound("four, once each", {user(1), user(1), user(1), user(1)});
}

TEST(TicketLockExplored, TriersTakeItOnlyWhenItIsFree) {
    expect_sound("two that try", {trier, trier});
    expect_sound("two that wait and two that try", {user(1), user(1), trier, trier});
}

// Each of these looks right but is wrong.

struct SplitTicket : ExploredLock {
    std::uint32_t take_ticket() {
        const std::uint64_t mine = memory->load(next_word);
        memory->store(next_word, mine + 1);
        return static_cast<std::uint32_t>(mine);
    }
};

TEST(TicketLockExplored, FindsADuplicateTicket) {
    const Program split = [](InterleavedMemory& memory) { use<SplitTicket>(memory, 1); };
    // Two callers with one ticket: both enter, or the second waits for a ticket that has been served.
    EXPECT_THAT(explore("load and store for a ticket", {split, split}).fault, AnyOf("two hold the lock", "deadlock"));
}

struct SplitTry : ExploredLock {
    bool try_take_ticket(std::uint32_t ticket) {
        if (memory->load(next_word) != ticket) return false;
        memory->raise(next_word, 1);
        return true;
    }
};

TEST(TicketLockExplored, FindsANonAtomicTry) {
    const Program split = [](InterleavedMemory& memory) { try_once<SplitTry>(memory); };
    EXPECT_EQ(explore("look, then take", {split, split}).fault, "two hold the lock");
}

struct ForgottenRelease : ExploredLock {
    void serve_next() {
        const std::uint64_t served = memory->load(served_word);
        memory->store(served_word, served);
    }
};

TEST(TicketLockExplored, FindsALockThatIsNotPassedOn) {
    const Program keep = [](InterleavedMemory& memory) { use<ForgottenRelease>(memory, 1); };
    EXPECT_EQ(explore("not given on", {keep, keep}).fault, "deadlock");
}

}  // namespace
}  // namespace npushmem::coll
