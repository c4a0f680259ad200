// SPDX-License-Identifier: BSD-3-Clause
// Explores the real code of a few members through every order of their puts, gets and syncs. Puts land in any order
// until they are completed.
//
// Like the other explorers, it moves a member one operation further by running its program again from the beginning. It
// keeps the member's memory after each operation, so that the program's own writes in between apply to that copy, and
// to the real memory only once.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/coll/collectives.hpp"
#include "core/coll/host_collectives.hpp"
#include "core/coll/leader_exchange.hpp"

namespace npushmem::coll {

using Bytes = std::vector<std::byte>;
using Kept = std::shared_ptr<const Bytes>;

constexpr int calls = 5;
constexpr std::uint64_t area = 64;  // of each call's source and dest
constexpr std::uint64_t lines_at = Workspace::bytes + 2 * area * calls;
// Of a LeaderExchange, the lines of `max_broadcasts` and the beginnings of its areas.
constexpr std::uint64_t max_broadcasts = 8;
constexpr std::uint64_t memory_bytes = lines_at + area * (max_broadcasts + LeaderExchange::areas);
constexpr std::uint64_t source_of(int call) { return Workspace::bytes + 2 * area * static_cast<std::uint64_t>(call); }
constexpr std::uint64_t dest_of(int call) { return source_of(call) + area; }

struct ModelState {
    struct Operation {
        Kept fetched;  // by a get
        Kept memory;   // the own one after it
    };
    struct Member {
        std::vector<Operation> done;
        std::size_t call_begin = 0;  // how many were done when the present call began
        int syncs = 0;               // entered
        bool ended = false;
    };
    struct InFlightPut {
        int from;
        int to;
        std::uint64_t offset;
        Bytes bytes;
        std::uint64_t signal_at = 0;
        std::uint64_t signal = 0;  // 0: none
    };
    std::vector<Bytes> memory;
    std::vector<std::map<std::uint64_t, std::uint64_t>> signals;  // of each member, by their offset
    std::vector<std::uint64_t> steps;                             // that each member has announced
    std::vector<Member> members;
    std::vector<InFlightPut> in_flight;
    bool wrong = false;

    // Equal for worlds with the same future.
    [[nodiscard]] std::size_t key() const {
        std::size_t hash = 0;
        const auto add = [&](std::size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL + (hash >> 7U); };
        const auto add_bytes = [&](const Bytes& bytes) {
            add(std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
        };
        for (const Bytes& one : memory) add_bytes(one);
        for (const Member& one : members) {
            add(one.done.size() * 2 + (one.ended ? 1 : 0));
            for (std::size_t i = one.call_begin; i < one.done.size(); ++i)
                if (one.done[i].fetched) add_bytes(*one.done[i].fetched);
        }
        for (const std::uint64_t step : steps) add(step);
        for (const auto& of_member : signals)
            for (const auto& [at, signal] : of_member) add(at * 1000 + signal);
        std::size_t flying = 0;  // a set
        for (const InFlightPut& one : in_flight)
            flying +=
                std::hash<std::string_view>()({reinterpret_cast<const char*>(one.bytes.data()), one.bytes.size()}) *
                    (one.offset * 64 + static_cast<std::size_t>(one.to * 8 + one.from) + 1) +
                one.signal * 0x9E3779B97F4A7C15ULL * static_cast<std::size_t>(one.to * 8 + one.from + 1);
        add(flying);
        return hash;
    }
};

// A deliberate fault of a group.
enum class Fault { none, one_half, no_completion, no_sync };

// How members on two hosts synchronise.
struct Signals {
    std::uint64_t turns = 0;  // of the HostSync; 0: with barriers
    bool lines = false;       // the group has a LeaderExchange
    int calls = 3;
    std::vector<std::vector<int>> hosts{{0, 1}, {2, 3}};
    // Of the LeaderExchange:
    std::uint64_t areas = LeaderExchange::areas;
    std::uint64_t broadcast_room = LeaderExchange::broadcast_room;
};

class ExploredGroup final : public Group, public HostSignals {
public:
    ExploredGroup(ModelState& state, int own, Fault fault, Signals signals)
        : state_(state), own_(own), fault_(fault), real_(state.memory[static_cast<std::size_t>(own)]) {
        if (signals.turns == 0) return;
        grid_.hosts = static_cast<int>(signals.hosts.size());
        grid_.per_host = size() / grid_.hosts;
        grid_.own = {own / grid_.per_host, own % grid_.per_host};
        host_sync_ = std::make_unique<HostSync>(*this, 0, signals.hosts, own, signals.turns);
        if (signals.lines)
            lines_ =
                std::make_unique<LeaderExchange>(*this, *host_sync_, first_line, signals.areas, signals.broadcast_room);
    }

    // The first operation of every program.
    Status begin() {
        return once([](Bytes&) { return true; });
    }
    void begin_call() {
        if (!stopped_) me().call_begin = std::max(me().call_begin, at_);
    }

    [[nodiscard]] int size() const override { return static_cast<int>(state_.members.size()); }
    [[nodiscard]] int index() const override { return own_; }
    Status sync() override {
        const int sync_number = ++syncs_;
        Status arrived = once([&](Bytes&) {
            ++me().syncs;
            return true;
        });
        if (!arrived.ok() || fault_ == Fault::no_sync) return arrived;
        return once([&](Bytes&) {
            return std::all_of(state_.members.begin(), state_.members.end(),
                               [&](const ModelState::Member& one) { return one.syncs >= sync_number; });
        });
    }
    Status complete() override {
        if (fault_ == Fault::no_completion) return {};
        return once([&](Bytes&) {
            return std::none_of(state_.in_flight.begin(), state_.in_flight.end(),
                                [&](const ModelState::InFlightPut& one) { return one.from == own_; });
        });
    }
    [[nodiscard]] std::byte* mapped_address(int member, std::uint64_t offset) const override {
        return member == own_ ? memory().data() + place_of(offset) : nullptr;
    }
    [[nodiscard]] bool all_mapped() const override { return false; }
    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) override {
        const auto* from = static_cast<const std::byte*>(source);
        const Bytes copy(from, from + bytes);
        return once([&](Bytes&) {
            if (host_sync_ && host_sync_->is_on_host(member))  // a store
                std::copy(copy.begin(), copy.end(), memory_of(member).begin() + place_of(offset));
            else
                state_.in_flight.push_back({own_, member, offset, copy});
            return true;
        });
    }
    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes, std::uint64_t signal_at,
               std::uint64_t signal) override {
        const auto* from = static_cast<const std::byte*>(source);
        const Bytes copy = bytes == 0 ? Bytes() : Bytes(from, from + bytes);
        const auto to = static_cast<std::uint64_t>(place_of(offset));
        return once([&](Bytes&) {
            state_.in_flight.push_back({own_, member, to, copy, signal_at, signal});
            return true;
        });
    }
    Result<std::uint64_t> wait(std::uint64_t signal_at, std::uint64_t least, int /*sender*/) override {
        const std::size_t number = at_;
        Status done = once([&](Bytes& fetched) {
            auto& signals = state_.signals[static_cast<std::size_t>(own_)];
            const auto found = signals.find(signal_at);
            if (found == signals.end() || found->second < least) return false;
            fetched.resize(sizeof(std::uint64_t));
            std::memcpy(fetched.data(), &found->second, fetched.size());
            return true;
        });
        if (!done.ok()) return done;
        std::uint64_t signal = 0;
        std::memcpy(&signal, me().done[number].fetched->data(), sizeof signal);
        return signal;
    }
    Status announce(std::uint64_t /*counter_at*/, std::uint64_t step, const Outcome& /*outcome*/) override {
        return once([&](Bytes&) {
            state_.steps[static_cast<std::size_t>(own_)] = step;
            return true;
        });
    }
    Result<Outcome> wait_for(int member, std::uint64_t /*counter_at*/, std::uint64_t step) override {
        Status done = once([&](Bytes&) { return state_.steps[static_cast<std::size_t>(member)] >= step; });
        return done.ok() ? Result<Outcome>(Outcome{}) : Result<Outcome>(done);
    }
    int dead_pe() override { return -1; }
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override {
        const std::size_t number = at_;
        Status done = once([&](Bytes& fetched) {
            const std::byte* there = memory_of(member).data() + place_of(offset);
            fetched.assign(there, there + bytes);
            return true;
        });
        if (done.ok()) std::memcpy(dest, me().done[number].fetched->data(), bytes);
        return done;
    }
    // Of four members, 0 and 1 are on one host, 2 and 3 on another. To explore more, they do not map each other.
    [[nodiscard]] const HostGrid* host_grid() const override {
        return size() == grid_.hosts * grid_.per_host ? &grid_ : nullptr;
    }
    [[nodiscard]] HostSync* host_sync() const override { return host_sync_.get(); }
    [[nodiscard]] SmallExchange* small_exchange() override { return lines_.get(); }
    [[nodiscard]] SmallBroadcast* small_broadcast() override { return lines_.get(); }
    [[nodiscard]] std::uint64_t workspace() const override { return 0; }
    unsigned next_workspace_half() override { return fault_ == Fault::one_half ? 0 : halves_++ % 2; }

    // After the program, its memory is that at the stop.
    void end() {
        if (stopped_)
            memory() = real_;
        else
            me().ended = true;
    }
    [[nodiscard]] bool moved() const { return moved_; }
    [[nodiscard]] bool stopped() const { return stopped_; }

private:
    static constexpr std::uint64_t first_line = 1U << 20;
    // Returns where the model keeps it.
    [[nodiscard]] static std::ptrdiff_t place_of(std::uint64_t offset) {
        if (offset < first_line) return static_cast<std::ptrdiff_t>(offset);
        const std::uint64_t at = offset - first_line;
        if (at < LeaderExchange::broadcast_room) {
            EXPECT_LT(at, area * max_broadcasts);
            return static_cast<std::ptrdiff_t>(lines_at + at);
        }
        const std::uint64_t of_exchanges = at - LeaderExchange::broadcast_room;
        const std::uint64_t in_area = of_exchanges % LeaderExchange::area_bytes;
        EXPECT_LT(in_area, area);
        const std::uint64_t number = max_broadcasts + of_exchanges / LeaderExchange::area_bytes;
        return static_cast<std::ptrdiff_t>(lines_at + number * area + in_area);
    }
    [[nodiscard]] Bytes& memory_of(int member) const { return state_.memory[static_cast<std::size_t>(member)]; }
    [[nodiscard]] Bytes& memory() const { return memory_of(own_); }
    [[nodiscard]] ModelState::Member& me() const { return state_.members[static_cast<std::size_t>(own_)]; }

    template <class Operation>
    Status once(Operation&& operation) {
        Status stop{Code::again, "explored so far"};
        if (stopped_) return stop;
        if (at_ < me().done.size()) {
            // The same address, which the program may have pointers to.
            std::copy(me().done[at_].memory->begin(), me().done[at_].memory->end(), memory().begin());
            ++at_;
            return {};
        }
        stopped_ = moved_;
        if (stopped_) {
            real_ = memory();
            return stop;
        }
        std::copy(real_.begin(), real_.end(), memory().begin());
        Bytes fetched;
        stopped_ = !operation(fetched);
        if (stopped_) return stop;
        moved_ = true;
        me().done.push_back({fetched.empty() ? nullptr : std::make_shared<const Bytes>(fetched),
                             std::make_shared<const Bytes>(memory())});
        ++at_;
        return {};
    }

    ModelState& state_;
    int own_;
    Fault fault_;
    HostGrid grid_{2, 2, {own_ / 2, own_ % 2}, {0, 1, 2, 3}};  // or as the signals
    Bytes real_;  // the own memory as the model state has it, while the program runs over what it was
    std::size_t at_ = 0;
    int syncs_ = 0;
    unsigned halves_ = 0;
    bool moved_ = false;
    bool stopped_ = false;
    std::unique_ptr<HostSync> host_sync_;
    std::unique_ptr<LeaderExchange> lines_;
};

inline std::int32_t value_of(int call, int member) { return (call + 1) * 100 + member; }

// One call of one member: the operation, and the expected contents of its dest.
struct Call {
    std::function<Status(Group&, int call)> run;
    std::function<std::vector<std::int32_t>(int call, int member, int members)> expected;
};

inline void program(ExploredGroup& group, ModelState& state, const Call& call, int calls_made) {
    if (!group.begin().ok()) return;
    for (int number = 0; number < calls_made; ++number) {
        group.begin_call();
        std::vector<std::int32_t> source(static_cast<std::size_t>(group.size()), value_of(number, group.index()));
        std::memcpy(group.mapped_address(group.index(), source_of(number)), source.data(),
                    source.size() * sizeof(std::int32_t));
        if (!call.run(group, number).ok()) return;
        const auto expected = call.expected(number, group.index(), group.size());
        state.wrong = state.wrong || std::memcmp(group.mapped_address(group.index(), dest_of(number)), expected.data(),
                                                 expected.size() * sizeof(std::int32_t)) != 0;
        // A program may reuse its arrays.
        for (const std::uint64_t array : {source_of(number), dest_of(number)})
            std::memset(group.mapped_address(group.index(), array), 0xEE, area);
    }
}

inline std::vector<ModelState> successors(const ModelState& state, const Call& call, Fault fault, Signals signals) {
    std::vector<ModelState> out;
    for (std::size_t i = 0; i < state.members.size(); ++i) {
        if (state.members[i].ended) continue;
        ModelState next = state;
        ExploredGroup group(next, static_cast<int>(i), fault, signals);
        program(group, next, call, signals.calls);
        group.end();
        if (group.moved() || !group.stopped()) out.push_back(std::move(next));
    }
    for (std::size_t i = 0; i < state.in_flight.size(); ++i) {
        ModelState next = state;
        const ModelState::InFlightPut landing = std::move(next.in_flight[i]);
        next.in_flight.erase(next.in_flight.begin() + static_cast<std::ptrdiff_t>(i));
        std::copy(
            landing.bytes.begin(), landing.bytes.end(),
            next.memory[static_cast<std::size_t>(landing.to)].begin() + static_cast<std::ptrdiff_t>(landing.offset));
        if (landing.signal != 0) next.signals[static_cast<std::size_t>(landing.to)][landing.signal_at] = landing.signal;
        out.push_back(std::move(next));
    }
    return out;
}

// Returns "" or the fault.
inline std::string explore(const char* what, int members, const Call& call, Fault fault = Fault::none,
                           Signals signals = {}) {
    constexpr std::size_t bound = 300'000;
    ModelState first;
    first.memory.assign(static_cast<std::size_t>(members), Bytes(memory_bytes));
    first.members.resize(static_cast<std::size_t>(members));
    first.signals.resize(static_cast<std::size_t>(members));
    first.steps.resize(static_cast<std::size_t>(members));
    std::vector<ModelState> open{first};
    std::unordered_set<std::size_t> seen{first.key()};
    std::string found;
    while (!open.empty() && found.empty() && seen.size() < bound) {
        const ModelState state = std::move(open.back());
        open.pop_back();
        const bool ended =
            std::all_of(state.members.begin(), state.members.end(), [](const auto& m) { return m.ended; });
        if (state.wrong) found = "wrong result";
        auto next = successors(state, call, fault, signals);
        if (next.empty() && !ended && found.empty()) found = "deadlock";
        for (ModelState& one : next)
            if (seen.insert(one.key()).second) open.push_back(std::move(one));
    }
    if (seen.size() >= bound) found = "not all explored";
    std::printf("%s of %d: %zu states%s%s (bound %zu)\n", what, members, seen.size(),
                found.empty() ? "" : ", fault: ", found.c_str(), bound);
    return found;
}

}  // namespace npushmem::coll
