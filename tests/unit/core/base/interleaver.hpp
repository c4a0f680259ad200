// SPDX-License-Identifier: BSD-3-Clause
// Runs a few small programs over shared words through every interleaving of their memory operations, and checks that
// all of them end in every one.
//
// It works like the barriers' explorer. A program's state is the list of results of the operations it has done. One
// step runs it again from the beginning with those results and does one new operation. Then it runs to its end over a
// memory without real answers (every load gives `InterleavedPrograms::ending`, which must end its waits). So the
// explored code is the code that runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace npushmem::testing {

struct InterleavedWorld {
    struct Late {
        int word;
        std::uint64_t value;
    };
    struct Program {
        std::vector<std::uint64_t> results;
        std::vector<Late> late;     // stores that have not landed, in their order
        std::size_t forgotten = 0;  // how many results no longer matter
        bool ended = false;
    };
    struct Sleeper {
        int program;
        int word;
    };
    std::vector<std::uint64_t> words;
    std::vector<Program> programs;
    std::vector<Sleeper> asleep;  // in the order in which they fell asleep

    // Equal for worlds with the same future.
    [[nodiscard]] std::string key() const;
};

// One program's view of the memory during one step.
class InterleavedMemory {
public:
    InterleavedMemory(InterleavedWorld& world, int own, std::uint64_t ending)
        : world_(&world), own_(own), ending_(ending) {}

    // Sequentially consistent.
    std::uint64_t load(int word);
    void store(int word, std::uint64_t value);
    // Adds; the state does not record the previous value, which the program ignores.
    void raise(int word, std::uint64_t value);
    // Returns the previous value.
    std::uint64_t add(int word, std::uint64_t value);
    std::uint64_t exchange(int word, std::uint64_t value);
    // Stores `value` if the word holds `expected`; returns the previous value.
    std::uint64_t compare_exchange(int word, std::uint64_t expected, std::uint64_t value);
    // A store that later operations of the same program may overtake (a release store).
    void store_late(int word, std::uint64_t value);
    // Acts like a loop of loads that ends when the word holds the value.
    void wait_equal(int word, std::uint64_t value);
    // Acts like a loop of loads that ends when the word holds at least the value; returns the word.
    std::uint64_t wait_reaches(int word, std::uint64_t value);
    // Acts like a futex wait: sleeps until woken, unless the word holds another value.
    void sleep(int word, std::uint64_t expected);
    // Wakes up to `count` sleepers of the word, in the order in which they fell asleep.
    void wake(int word, std::uint32_t count);

    // Forgets the program's past: its results so far do not matter from here on. Makes worlds equal that differ only in
    // the past.
    void forget();

    [[nodiscard]] bool moved() const { return moved_; }
    [[nodiscard]] bool stopped() const { return stopped_; }

private:
    InterleavedWorld::Program& me() { return world_->programs[static_cast<std::size_t>(own_)]; }
    std::uint64_t& at(int word) { return world_->words[static_cast<std::size_t>(word)]; }
    // Replays, or runs `operation` (which may be impossible) if it is this step's.
    template <class Operation>
    std::uint64_t once(Operation&& operation);
    // An operation that changes a word in place: it waits for the late stores.
    template <class Change>
    std::uint64_t change(int word, Change&& to);

    InterleavedWorld* world_;
    int own_;
    std::uint64_t ending_;
    std::size_t at_ = 0;
    bool moved_ = false;
    bool stopped_ = false;
};

struct InterleavedPrograms {
    std::vector<std::function<void(InterleavedMemory&)>> programs;
    std::vector<std::uint64_t> words;  // at first
    std::uint64_t ending = ~std::uint64_t{0};
    // Checks every world; returns "" or the fault. `ended` is true at the end of all programs.
    std::function<std::string(const InterleavedWorld&, bool ended)> check;
    std::size_t bound = 2'000'000;  // states
};

struct Interleavings {
    std::string fault;  // "" when none was found
    std::size_t states = 0;
    bool complete = true;  // false: the bound ended it
};

Interleavings run_all_interleavings(const InterleavedPrograms& programs);

}  // namespace npushmem::testing
