// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/stream/remote_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/moe/common/combine_plan.hpp"
#include "core/moe/stream/row_order.hpp"

namespace npushmem::moe {
namespace {

std::uint64_t load(const std::uint64_t* word) {
    // Acquire: pairs with the peer's signal, which it sends after the data.
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

Result<std::uint64_t> no_wait() { return Status{Code::again, "the host does not wait for one ring alone"}; }

std::chrono::nanoseconds time_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

class HostSenderPort {
public:
    HostSenderPort(SymmetricMemory& memory, const StreamCombine& work, int destination)
        : memory_(memory),
          work_(work),
          ring_(work.rings.ring_to(memory.my_pe(), destination)),
          row_(work.send.layout.row_bytes()),
          step_(ring_step(row_).value()),
          destination_(destination) {}

    void stage(const std::byte* first) { first_ = first; }

    [[nodiscard]] std::uint64_t head() const { return load(work_.rings.word(work_.rings.layout.head(destination_))); }
    static Result<std::uint64_t> await_head(std::uint64_t) { return no_wait(); }
    void copy(const RingPiece& piece) {
        const std::byte* source = first_ + piece.from / step_ * row_.value();
        if (row_.value() == step_) return write_to_ring(ring_ + piece.at, source, Bytes{piece.bytes});
        for (std::uint64_t i = 0; i < piece.bytes / step_; ++i) {
            write_to_ring(ring_ + piece.at + i * step_, source + i * row_.value(), row_);
        }
    }
    // A tail follows its data: in a ring at the receiver by the transport's order, in a ring at this PE by the
    // signal's.
    void commit(std::uint64_t tail) {
        memory_.fence();
        memory_.signal(work_.rings.word(work_.rings.layout.tail(memory_.my_pe())), tail, destination_);
    }
    static std::chrono::nanoseconds now() { return time_now(); }

private:
    void write_to_ring(std::byte* target, const std::byte* source, Bytes bytes) {
        if (!work_.rings.pulls()) return memory_.put(target, source, bytes, destination_);
        std::memcpy(target, source, bytes.value());
    }

    SymmetricMemory& memory_;
    const StreamCombine& work_;
    std::byte* ring_;
    const std::byte* first_ = nullptr;
    Bytes row_;
    std::uint64_t step_;
    int destination_;
};
static_assert(RingSenderPort<HostSenderPort>);

class HostReceiverPort {
public:
    HostReceiverPort(SymmetricMemory& memory, const StreamCombine& work, int source)
        : memory_(memory), work_(work), source_(source) {}

    [[nodiscard]] std::uint64_t tail() const { return load(work_.rings.word(work_.rings.layout.tail(source_))); }
    static Result<std::uint64_t> await_tail(std::uint64_t) { return no_wait(); }
    void release(std::uint64_t head) {
        memory_.fence();
        memory_.signal(work_.rings.word(work_.rings.layout.head(memory_.my_pe())), head, source_);
    }
    static std::chrono::nanoseconds now() { return time_now(); }

private:
    SymmetricMemory& memory_;
    const StreamCombine& work_;
    int source_;
};
static_assert(RingReceiverPort<HostReceiverPort>);

// A ring's state between calls, in the same lines as the kernels' states.
template <class State>
State read_state(const StreamCombine& work, Bytes line) {
    State state;
    std::memcpy(static_cast<void*>(&state), work.rings.word(line), sizeof state);
    return state;
}

Fragment part_of(const StreamCombine& work, std::int32_t expert, int destination, std::uint64_t chunk) {
    const auto entry = static_cast<std::size_t>(expert) * static_cast<std::size_t>(work.send.num_ranks) +
                       static_cast<std::size_t>(destination);
    const auto first = static_cast<std::uint64_t>(work.send.offset_table[entry]);
    const auto count = static_cast<std::uint64_t>(work.send.length_table[entry]);
    if (work.chunks == 1) return {Rows{first}, Rows{count}};
    const std::uint64_t slots = rows_of(work.chunk, static_cast<std::uint32_t>(work.receive.top_k)).value();
    // Slots ascend inside a fragment.
    const std::uint32_t* begin = work.send.slots + first;
    const std::uint32_t* from = std::lower_bound(begin, begin + count, chunk * slots);
    const std::uint32_t* to = std::lower_bound(from, begin + count, (chunk + 1) * slots);
    return {Rows{first + static_cast<std::uint64_t>(from - begin)}, Rows{static_cast<std::uint64_t>(to - from)}};
}

class SendTask {
public:
    SendTask(SymmetricMemory& memory, const StreamCombine& work, int destination, std::uint64_t chunk)
        : work_(work),
          ranks_{memory.my_pe(), destination},
          line_(work.rings.layout.sender_state(destination)),
          state_(read_state<RingSenderState>(work, line_)),
          port_(memory, work, destination),
          ring_(port_, work.rings.layout.shape(), ranks_, state_),
          step_(ring_step(work.send.layout.row_bytes()).value()) {
        for (std::int32_t expert = 0; expert < work.send.num_local_experts; ++expert) {
            const Fragment part = part_of(work, expert, destination, chunk);
            if (part.count > Rows{0}) parts_.push_back(part);
            left_ += part.count.value();
        }
    }
    SendTask(const SendTask&) = delete;
    SendTask& operator=(const SendTask&) = delete;
    ~SendTask() { std::memcpy(work_.rings.word(line_), &state_, sizeof state_); }

    [[nodiscard]] bool is_done() const { return left_ == 0; }
    // Sends one batch if it fits. Returns whether it did.
    Result<bool> step() {
        const std::uint64_t rows = next_rows();
        Result<bool> room = ring_.try_reserve(Bytes{rows * step_});
        if (!room.ok() || !room.value()) return room;
        for (std::uint64_t sent = 0; sent < rows;) sent += write_some(rows - sent);
        ring_.commit();
        left_ -= rows;
        return true;
    }
    // Whether the peer has changed its head since the last read.
    [[nodiscard]] bool has_update() const { return port_.head() != state_.head; }
    [[nodiscard]] Status stall_status(std::chrono::nanoseconds waited, const Status& cause) const {
        return ring_full_status(ranks_, work_.rings.layout.shape(), {state_.head, state_.tail},
                                Bytes{next_rows() * step_}, waited, cause);
    }

private:
    // Number of rows in the next batch.
    [[nodiscard]] std::uint64_t next_rows() const {
        return std::min(left_, work_.rings.layout.shape().batch.value() / step_);
    }
    std::uint64_t write_some(std::uint64_t most) {
        Fragment& part = parts_[at_];
        const std::uint64_t rows = std::min(most, part.count.value());
        port_.stage(work_.send.x + bytes_of(part.first, work_.send.layout.row_bytes()).value());
        ring_.write(Bytes{rows * step_});
        part = {part.first + Rows{rows}, Rows{part.count.value() - rows}};
        if (part.count == Rows{0}) ++at_;
        return rows;
    }

    const StreamCombine& work_;
    RingRanks ranks_;
    Bytes line_;
    RingSenderState state_;
    HostSenderPort port_;
    RingSender<HostSenderPort> ring_;
    std::uint64_t step_;
    std::vector<Fragment> parts_;
    std::size_t at_ = 0;
    std::uint64_t left_ = 0;
};

class ReceiveTask {
public:
    ReceiveTask(SymmetricMemory& memory, const StreamCombine& work, int source, std::uint64_t chunk)
        : memory_(memory),
          work_(work),
          ranks_{memory.my_pe(), source},
          line_(work.rings.layout.receiver_state(source)),
          state_(read_state<RingReceiverState>(work, line_)),
          port_(memory, work, source),
          ring_(port_, work.rings.layout.shape(), ranks_, state_),
          step_(ring_step(work.send.layout.row_bytes()).value()) {
        const std::uint64_t* first = work.first + chunk * static_cast<std::uint64_t>(work.send.num_ranks + 1) + source;
        slots_ = work.slots + first[0];
        left_ = first[1] - first[0];
    }
    ReceiveTask(const ReceiveTask&) = delete;
    ReceiveTask& operator=(const ReceiveTask&) = delete;
    ~ReceiveTask() { std::memcpy(work_.rings.word(line_), &state_, sizeof state_); }

    [[nodiscard]] bool is_done() const { return left_ == 0; }
    // Takes the available rows. Returns whether there were any.
    Result<bool> step() {
        const Result<Bytes> there = ring_.available(Bytes{left_ * step_});
        if (!there.ok()) return there.status();
        if (there.value() == Bytes{0}) return false;
        Status placed;
        ring_.pieces(there.value(), [&](const RingPiece& piece) {
            if (placed.ok()) placed = place(piece);
        });
        if (!placed.ok()) return placed;
        ring_.take(there.value());
        left_ -= there.value().value() / step_;
        if (left_ == 0) ring_.publish_head();
        return true;
    }
    [[nodiscard]] bool has_update() const { return port_.tail() != state_.tail; }
    [[nodiscard]] Status stall_status(std::chrono::nanoseconds waited, const Status& cause) const {
        return ring_empty_status(ranks_, {state_.head, state_.tail}, waited, cause);
    }

private:
    // The piece in local memory: in the ring itself, or fetched from the sender's memory.
    Result<const std::byte*> part(const RingPiece& piece) {
        const std::byte* part = work_.rings.ring_from(memory_.my_pe(), ranks_.peer) + piece.at;
        if (!work_.rings.pulls()) return part;
        fetched_.resize(piece.bytes);
        if (Status s = memory_.fetch(fetched_.data(), part, Bytes{piece.bytes}, ranks_.peer); !s.ok()) return s;
        return fetched_.data();
    }

    Status place(const RingPiece& piece) {
        const Result<const std::byte*> there = part(piece);
        if (!there.ok()) return there.status();
        const CombineSend& send = work_.send;
        for (std::uint64_t i = 0; i < piece.bytes / step_; ++i, ++slots_) {
            std::memcpy(send.region + send.layout.slot(send.epoch, *slots_).value(), there.value() + i * step_,
                        send.layout.row_bytes().value());
            if (send.arrivals == nullptr) continue;
            std::uint64_t* counters = send.arrivals + (send.epoch & 1U) * send.layout.slots().value();
            // Relaxed: only this PE accesses it, and reads it after the next launch.
            __atomic_fetch_add(counters + send.layout.in_buffer(*slots_), 1, __ATOMIC_RELAXED);
        }
        return {};
    }

    SymmetricMemory& memory_;
    const StreamCombine& work_;
    RingRanks ranks_;
    Bytes line_;
    RingReceiverState state_;
    HostReceiverPort port_;
    RingReceiver<HostReceiverPort> ring_;
    std::uint64_t step_;
    const std::uint32_t* slots_ = nullptr;
    std::uint64_t left_ = 0;
    std::vector<std::byte> fetched_;
};

// Runs one step of each unfinished task. Returns whether any made progress, or the first failure.
template <class Task>
Result<bool> step_all(std::vector<std::unique_ptr<Task>>& tasks) {
    bool moved = false;
    for (auto& task : tasks) {
        if (task->is_done()) continue;
        const Result<bool> stepped = task->step();
        if (!stepped.ok()) return stepped.status();
        moved = moved || stepped.value();
    }
    return moved;
}

class RemoteExchange {
public:
    RemoteExchange(SymmetricMemory& memory, const StreamCombine& work, std::uint64_t chunk,
                   std::chrono::nanoseconds limit)
        : memory_(memory), work_(work), limit_(limit) {
        for (std::int32_t i = 1; i <= work.send.num_ranks; ++i) {
            const int rank = (memory.my_pe() + i) % work.send.num_ranks;
            if (work.send.host_served[rank] == 0) continue;
            sends_.push_back(std::make_unique<SendTask>(memory, work, rank, chunk));
            receives_.push_back(std::make_unique<ReceiveTask>(memory, work, rank, chunk));
        }
    }

    Status run() {
        while (!is_done()) {
            const Result<bool> moved = step_all_tasks();
            Status step_status = moved.status();
            if (moved.ok() && !moved.value()) step_status = wait_for_peers();
            if (!step_status.ok()) return step_status.within(fmt::format("combine, call {}", work_.send.epoch));
        }
        return {};
    }

private:
    [[nodiscard]] bool is_done() const {
        const auto task_done = [](const auto& task) { return task->is_done(); };
        return std::ranges::all_of(sends_, task_done) && std::ranges::all_of(receives_, task_done);
    }

    // The transport must not hold back puts while this rank waits.
    Result<bool> step_all_tasks() {
        Result<bool> sent = step_all(sends_);
        if (!sent.ok()) return sent;
        Result<bool> taken = step_all(receives_);
        if (!taken.ok()) return taken;
        const bool moved = sent.value() || taken.value();
        // Also once after all progress has stopped: a receiver that finds no data publishes its head.
        if (moved || std::exchange(quiet_due_, false)) {
            if (Status s = memory_.quiet(); !s.ok()) return s;
        }
        quiet_due_ = moved;
        return moved;
    }

    // Waits until any peer has changed a word.
    [[nodiscard]] Status wait_for_peers() const {
        const auto updated = [](const auto& task) { return !task->is_done() && task->has_update(); };
        const auto begin = time_now();
        const Status waited = memory_.wait(
            [&] { return std::ranges::any_of(receives_, updated) || std::ranges::any_of(sends_, updated); }, limit_);
        if (waited.ok()) return {};
        const auto unfinished = [](const auto& task) { return !task->is_done(); };
        const auto receive = std::ranges::find_if(receives_, unfinished);
        if (receive != receives_.end()) return (*receive)->stall_status(time_now() - begin, waited);
        return (*std::ranges::find_if(sends_, unfinished))->stall_status(time_now() - begin, waited);
    }

    SymmetricMemory& memory_;
    const StreamCombine& work_;
    std::chrono::nanoseconds limit_;
    std::vector<std::unique_ptr<SendTask>> sends_;
    std::vector<std::unique_ptr<ReceiveTask>> receives_;
    bool quiet_due_ = false;
};

}  // namespace

Status exchange_remotely(SymmetricMemory& memory, const StreamCombine& work, std::uint64_t chunk,
                         std::chrono::nanoseconds limit) {
    RemoteExchange exchange(memory, work, chunk, limit);
    Status result = exchange.run();
    // Completes the heads published at the end.
    const Status complete = memory.quiet();
    return result.ok() ? complete : result;
}

void signal_stream_abort_remotely(SymmetricMemory& memory, const StreamCombine& work) {
    memory.fence();
    for (std::int32_t rank = 0; rank < work.send.num_ranks; ++rank) {
        if (work.send.host_served[rank] == 0) continue;
        memory.add(work.rings.word(work.rings.layout.tail(memory.my_pe())), abort_bit, rank);
        memory.add(work.rings.word(work.rings.layout.head(memory.my_pe())), abort_bit, rank);
    }
}

}  // namespace npushmem::moe
