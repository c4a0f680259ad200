// SPDX-License-Identifier: BSD-3-Clause
// Synchronisation of members on several hosts without barriers of all: a message carries the signal of its arrival, and
// the members of a host, which map each other, wait for counters in their memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/parking.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

// What a member reports to the others of its part in a call.
struct Outcome {
    enum Kind : std::uint32_t { ok, failed, peer_dead };

    Kind kind = ok;
    int dead_pe = -1;  // if known
    // The member waits for nobody any more: who relies on it does not know either what the others do.
    bool has_left = false;

    // The encoded form has so many bits; 0: ok.
    static constexpr unsigned bits = 24;
    [[nodiscard]] std::uint64_t encoded() const {
        const auto dead = static_cast<std::uint64_t>(dead_pe + 1);
        return kind | (has_left ? 4U : 0U) | (dead <= max_dead ? dead << 3 : 0);
    }
    static Outcome decoded(std::uint64_t word) {
        return {static_cast<Kind>(word & 3U), static_cast<int>(word >> 3 & max_dead) - 1, (word & 4U) != 0};
    }

private:
    static constexpr std::uint64_t max_dead = (std::uint64_t{1} << (bits - 3)) - 1;
};

// The last step that a member has announced, and the last steps in which it has failed: a member that waits for one may
// be some steps behind. Only a member that waits for nobody any more, since a wait of it has failed, is 62 steps ahead.
// Eight lines of shared memory, all zero at first.
//
//     0..15 a FutexCounter with the step | 16..511 the last failures by step, 62: the step, and the outcome
class HostCounter {
public:
    static constexpr std::uint64_t bytes = 512;

    explicit HostCounter(std::byte* line) : line_(line) {}

    [[nodiscard]] FutexCounter counter() const { return FutexCounter(line_); }
    // Relaxed: the counter's store publishes it.
    void fail(std::uint64_t step, const Outcome& outcome) const {
        failure(step).store(step << Outcome::bits | outcome.encoded(), std::memory_order_relaxed);
    }
    [[nodiscard]] Outcome outcome(std::uint64_t step) const {
        const std::uint64_t word = failure(step).load(std::memory_order_relaxed);
        return word >> Outcome::bits >= step ? Outcome::decoded(word) : Outcome{};
    }
    static constexpr std::uint64_t failures = (bytes - 16) / sizeof(std::uint64_t);

private:
    [[nodiscard]] std::atomic_ref<std::uint64_t> failure(std::uint64_t step) const {
        return std::atomic_ref(reinterpret_cast<std::uint64_t*>(line_)[2 + step % failures]);
    }

    std::byte* line_;
};

// The operations beneath. Offsets are of symmetric memory.
class HostSignals {
public:
    HostSignals() = default;
    HostSignals(const HostSignals&) = delete;
    HostSignals& operator=(const HostSignals&) = delete;
    virtual ~HostSignals() = default;

    // Puts `bytes` at `offset` of a member on another host, and then sets its 8-byte word at `signal_at`. The source
    // may be reused on return. The transport reports a later failure as an event or in a later quiet.
    virtual Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes,
                       std::uint64_t signal_at, std::uint64_t signal) = 0;
    // Waits until the word at `signal_at` of this member, which `sender` sets, is at least `least`. Returns the word;
    // what was put before it is visible.
    virtual Result<std::uint64_t> wait(std::uint64_t signal_at, std::uint64_t least, int sender) = 0;
    // Records a step of this member in its HostCounter at `counter_at`, and wakes the members that wait for it. Returns
    // a failure of the transports during a wait, if there was one since the last call.
    virtual Status announce(std::uint64_t counter_at, std::uint64_t step, const Outcome& outcome) = 0;
    // Waits until a member of this host has announced the step, and returns its outcome. What the member has stored
    // before is visible.
    virtual Result<Outcome> wait_for(int member, std::uint64_t counter_at, std::uint64_t step) = 0;
    // Returns a member that is known to be dead, as a PE; -1 if there is none.
    virtual int dead_pe() = 0;
};

// For one member; one thread at a time. All members make the same calls in the same order, also after a failure: a
// member that cannot send reports that to the others, which return its failure. A member whose wait has failed no
// longer knows what the others do. From then on it waits for nobody, and sends and announces nothing but the failure.
// The same holds for a member that has received this failure.
//
//     of each member, all zero at first:
//     | its HostCounter | `turns` turns of 8-byte signals |
//
// A turn has a signal for each member, or with more than `max_slots` members for each host. A signal is the number of
// the epoch, times 2^24, plus the sender's Outcome.
//
// A step is a point at which members of a host wait for each other. An epoch is the exchange of at most one message
// from each member to each one on another host; where signals are for hosts, of at most one from each host to a member.
// Signals and messages of epoch e use turn e % turns of their memory, so a sender overwrites those of epoch e - turns,
// which all members must have left. An exchange is an epoch in which every member waits for all others, by itself or
// through its host: after it each knows that all have left the epochs before it. Other epochs do not show that. So an
// exchange follows the last one within `turns` - 1 epochs: prepare() adds one where others would come between.
class HostSync {
public:
    static constexpr std::uint64_t turns = 32;  // after 30 broadcasts comes an exchange
    // A member that announces the end of an exchange may be two steps of each epoch ahead, and one of the next
    // exchange.
    static_assert(HostCounter::failures >= 2 * (turns - 2) + 2);
    static_assert(turns * sizeof(std::uint64_t) % 64 == 0, "memory_bytes() is aligned to a line");
    static constexpr int max_slots = 128;
    // Returns the size of each member's memory in a job of that many PEs, aligned to a line.
    static constexpr std::uint64_t memory_bytes(int npes) {
        return HostCounter::bytes + turns * slots_for(npes) * sizeof(std::uint64_t);
    }

    // `hosts`: the members on each host, the same on all members. `at` is the offset of every member's memory.
    // Tests use fewer turns.
    HostSync(HostSignals& signals, std::uint64_t at, std::vector<std::vector<int>> hosts, int index,
             std::uint64_t turns_in_use = turns);

    [[nodiscard]] int hosts() const { return static_cast<int>(hosts_.size()); }
    [[nodiscard]] const std::vector<int>& members_on(int host) const { return hosts_[static_cast<std::size_t>(host)]; }
    [[nodiscard]] int host_of(int member) const { return hosts_of_[static_cast<std::size_t>(member)]; }
    [[nodiscard]] int host() const { return host_of(index_); }
    [[nodiscard]] bool is_on_host(int member) const { return host_of(member) == host(); }
    // Returns all hosts but the own one, from its successor on.
    [[nodiscard]] const std::vector<int>& other_hosts() const { return other_hosts_; }
    // The first member of a host.
    [[nodiscard]] int leader_on(int host) const { return members_on(host).front(); }
    [[nodiscard]] int leader() const { return leader_on(host()); }
    // Returns the number of exchanges before the present epoch, equal on all members.
    [[nodiscard]] std::uint64_t exchanges() const { return exchanges_; }

    // Returns the failure of an earlier wait of this member, after which it must not write to the others.
    [[nodiscard]] const Status& broken() const { return broken_; }

    // Collective. Call it before up to `turns` - 2 epochs that are no exchanges: adds one, if the next exchange would
    // come too late.
    Status prepare(std::uint64_t epochs);
    // Collective. Adds an exchange: afterwards all members have left the epochs before it.
    Status meet();

    // Sends to a member of another host. After a failure, `done` or of the put, reports that to the member instead.
    // Returns the first failure.
    Status send(Status done, int member, std::uint64_t offset, const void* source, std::uint64_t bytes);
    // Waits for the message of a member of another host. Returns the first failure.
    Status receive(Status done, int sender);
    // Returns whether several members of a host may send to one member in an epoch.
    [[nodiscard]] bool has_pairs() const { return hosts_of_.size() <= max_slots; }

    // Ends a step. Both return the first failure, which may be another member's.
    Status announce(Status done);
    Status wait_for(Status done, int member);  // until it has announced this step
    void next_step() { ++step_; }
    // Waits for all members of this host; a step.
    Status sync_host(Status done);

    // Ends the epoch. `exchange`: this member has waited for all others.
    void next_epoch(bool exchange);

    // Waits for the messages of the senders, then for the members of this host; a step that ends the epoch.
    Status settle(Status done, const std::vector<int>& senders, bool exchange);
    // Exchanges one message between each two hosts; two steps and an epoch. When all members of its host have come, the
    // leader of each calls send_to(done, host) for each other host, which uses send().
    Status exchange(Status done, const std::function<Status(Status done, int host)>& send_to);

private:
    // Returns the turn of the present epoch.
    [[nodiscard]] std::uint64_t turn() const { return epoch_ % turns_; }
    // Returns the number of signals of a turn.
    static constexpr std::uint64_t slots_for(int members) {
        return static_cast<std::uint64_t>(members < max_slots ? members : max_slots);
    }
    // Returns where the signal of a sender's message in this epoch arrives.
    [[nodiscard]] std::uint64_t signal_of(int sender) const {
        const int slot = has_pairs() ? sender : host_of(sender);
        return at_ + HostCounter::bytes +
               (turn() * slots_for(static_cast<int>(hosts_of_.size())) + static_cast<std::uint64_t>(slot)) *
                   sizeof(std::uint64_t);
    }

    // Returns the first failure of this member and others.
    Status first_failure(Status done, const Result<Outcome>& others_outcome, int other);
    [[nodiscard]] Outcome outcome_of(const Status& done) const;
    static Status failure_of(const Outcome& outcome, int other);

    HostSignals& signals_;
    std::uint64_t at_;
    std::vector<std::vector<int>> hosts_;
    std::vector<int> hosts_of_;  // by member
    std::vector<int> other_hosts_;
    int index_;
    std::uint64_t turns_;
    std::uint64_t epoch_ = 1;
    std::uint64_t last_exchange_ = 0;
    std::uint64_t exchanges_ = 0;
    Status broken_;     // a failed wait
    int dead_pe_ = -1;  // that another member has named
    std::uint64_t step_ = 1;
};

}  // namespace npushmem::coll
