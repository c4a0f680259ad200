// State of a simulation: members, values, events, and cores.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace npushmem::simulate {

// Picoseconds. Whole numbers, so that simultaneous events have equal keys, and nothing depends on rounding.
using Time = std::int64_t;
constexpr double picoseconds = 1000;
constexpr std::uint64_t generation = 1;

struct LinkTimes {
    explicit LinkTimes(const Link& link)
        : latency(std::llround(link.latency * picoseconds)),
          overhead(std::llround(link.overhead * picoseconds)),
          gap(std::llround(link.gap * picoseconds)) {}
    Time latency;
    Time overhead;
    Time gap;
};

struct Member {
    Time clock = 0;
    Time may_send = 0;  // earliest time of the next send, because of the gap
    Time may_receive = 0;
    Time acknowledged = 0;         // time when all its sent messages are acknowledged
    std::uint32_t done = 0;        // operations of its program
    std::uint64_t fetched = 0;     // by its add; a schedule makes at most one in a call
    int first_value = -1;          // first of its slots that have a value
    barrier::AwaitedSlot awaited;  // the awaited slot, if it waits
    std::uint64_t wanted = 0;
    bool waits = false;
    bool is_runnable = true;  // its wait is over, or it has not started
    bool finished = false;
};

struct DeliveredValue {
    int slot;
    int next;  // of the same member
    Time time;
    Time overhead;  // to find it
    std::uint64_t value;
};

struct Event {
    enum class Kind : std::uint8_t { resume, signal, add, reply, turn } kind;
    int member;  // or core
    int slot = 0;
    int from = 0;
    std::uint64_t value = 0;
};

// A core that several members share.
struct Core {
    std::vector<int> members;  // unfinished members
    std::size_t at = 0;
    std::size_t idle_turns = 0;
    Time time = 0;
    bool idle = false;
};

struct Operation {
    enum class Kind : std::uint8_t { signal, wait, complete } kind;
    barrier::AwaitedSlot awaited;
    std::uint64_t value = 0;
};

inline std::uint64_t key(int member, int slot) {
    return static_cast<std::uint64_t>(member) << 32U | static_cast<std::uint32_t>(slot);
}

}  // namespace npushmem::simulate
