// SPDX-License-Identifier: BSD-3-Clause
// Operations of PEs on a PE that is killed, and the events that report its death.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/contract/process_traffic.hpp"

namespace npushmem::contract {

constexpr int victim = 2;
inline const Members survivors{0, 1};

// Whether a failure means that the peer is lost, not only that the operation failed.
constexpr bool is_loss(Code code) {
    return code == Code::peer_dead || code == Code::unreachable || code == Code::timeout;
}

bool reports_death(const Pe& pe, int other);

// Counts the events that report lost PEs.
class LossEvents {
public:
    explicit LossEvents(Pe& pe) : pe_(pe) {}

    int count(int lost);
    void await(int lost);

private:
    Pe& pe_;
    std::map<int, int> counts_;
};

enum class Work { puts, gets, atomics, put_signals, strided_puts, fences_and_quiets, registrations, nothing };

// Operations on the victim, over a queue of their own.
class VictimOperations {
public:
    VictimOperations(Pe& pe, Work work);
    VictimOperations(const VictimOperations&) = delete;
    VictimOperations& operator=(const VictimOperations&) = delete;
    ~VictimOperations();

    // Makes the calls of this kind of work, whatever they return. They must return.
    void call_often();
    void expect_that_calls_fail();
    // Destroys the queue, and writes a pattern into the memory that its operations used.
    void end();
    // The pattern is still there.
    void expect_untouched_memory() const;

    // The victim writes its handle into the memory of the others, for Work::registrations.
    static void give_handle(Pe& victims);

private:
    [[nodiscard]] bool is_possible(Work work) const;
    Code call(Work work);
    Code update();
    Code put_and_signal();
    Code put_strided();
    Code put_fence_quiet();
    Code register_and_import();
    [[nodiscard]] npushmem_rma bulk();

    Pe& pe_;
    Work work_;
    std::vector<std::byte> bulk_;
    std::uint64_t word_ = 0;
    Slice source_;  // registered again and again
    std::uint64_t queue_ = 0;
};

}  // namespace npushmem::contract
