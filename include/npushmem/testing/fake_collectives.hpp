// SPDX-License-Identifier: BSD-3-Clause
// A library of collectives whose PEs are in one process. It has reductions of I32, I64, F32 and F64.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/plugin/collectives.hpp"

namespace npushmem::fakes {

// State shared by the PEs, and how they behave. A test sets the behaviour before the calls that it concerns.
class FakeCollectivesJob {
public:
    std::string description = "fake 1.0";
    std::map<int, Status> create_failures;                           // by PE, before it exchanges anything
    std::function<bool(const npushmem_coll_call&)> is_unsupported;   // by `start`; empty: none
    std::function<Status(int pe, std::uint32_t collective)> result;  // of a call that is complete; empty: ok
    bool is_stuck = false;                                           // no call is ever complete
    int teams = 0;                                                   // that exist, by member
    int abandoned = 0;                                               // calls

private:
    friend class FakeCollectives;

    // One call of a team: the sources that have arrived.
    struct Round {
        std::vector<std::vector<std::byte>> sources;
        int arrived = 0;
        int left = 0;
    };
    using RoundKey = std::pair<std::uint64_t, std::uint64_t>;  // the team, by its id on all members, and the call

    std::mutex lock_;
    std::uint64_t next_team_ = 1;
    std::map<RoundKey, Round> rounds_;
};

class FakeCollectives : public Collectives {
public:
    FakeCollectives(std::shared_ptr<FakeCollectivesJob> job, int pe)
        : job_(std::move(job)), pe_(pe), description_(job_->description) {}

    [[nodiscard]] const std::string& description() const override { return description_; }
    [[nodiscard]] std::uint64_t supports(std::uint32_t collective, std::uint32_t operation) const override {
        constexpr std::uint64_t integers = 1U << NPUSHMEM_COLL_I32 | 1U << NPUSHMEM_COLL_I64;
        constexpr std::uint64_t numbers = integers | 1U << NPUSHMEM_COLL_F32 | 1U << NPUSHMEM_COLL_F64;
        if (collective < NPUSHMEM_COLL_REDUCE) return operation == 0 ? 1 : 0;
        if (collective > NPUSHMEM_COLL_REDUCESCATTER || operation > NPUSHMEM_COLL_PROD) return 0;
        return operation <= NPUSHMEM_COLL_XOR ? integers : numbers;
    }

    Result<std::uint64_t> create_team(const npushmem_coll_team& team) override {
        std::uint64_t mine = 0;
        {
            const std::lock_guard guard(job_->lock_);
            if (const auto failing = job_->create_failures.find(pe_); failing != job_->create_failures.end())
                return failing->second;
            mine = job_->next_team_++;
        }
        // The first member's number names the team, as the id of a library for accelerators.
        std::vector<std::uint64_t> all(static_cast<std::size_t>(team.size));
        Status gathered =
            gather_from_members(team, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
        if (!gathered.ok()) return gathered;
        const std::lock_guard guard(job_->lock_);
        ++job_->teams;
        const std::uint64_t id = next_id_++;
        teams_[id] = {all.front(), team.size, team.index, 0};
        return id;
    }
    void destroy_team(std::uint64_t id) override {
        const std::lock_guard guard(job_->lock_);
        job_->teams -= static_cast<int>(teams_.erase(id));
    }

    Status start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) override {
        const bool reduction = call.collective >= NPUSHMEM_COLL_REDUCE;
        if (call.type > NPUSHMEM_COLL_C64 ||
            (supports(call.collective, call.operation) >> (reduction ? call.type : 0) & 1) == 0 ||
            (job_->is_unsupported && job_->is_unsupported(call)))
            return {Code::unsupported, "the fake does not have this call"};
        {
            const std::lock_guard guard(job_->lock_);
            Team& in = teams_.at(team);
            Pending pending{in, {in.job_id, in.calls++}, call, {}};
            if (call.counts != nullptr) pending.counts.assign(call.counts, call.counts + in.size);
            FakeCollectivesJob::Round& round = job_->rounds_[pending.key];
            round.sources.resize(static_cast<std::size_t>(in.size));
            const auto* from = static_cast<const std::byte*>(call.source);
            round.sources[static_cast<std::size_t>(in.index)].assign(from, from + source_bytes(in, call));
            ++round.arrived;
            request = next_id_++;
            pending_.emplace(request, std::move(pending));
        }
        return test(request);
    }
    Status test(std::uint64_t request) override {
        const std::lock_guard guard(job_->lock_);
        Pending& pending = pending_.at(request);
        FakeCollectivesJob::Round& round = job_->rounds_.at(pending.key);
        if (job_->is_stuck || !is_complete(pending.call, round, pending.team.size)) return {Code::again, {}};
        deliver(pending, round);
        Status done = job_->result ? job_->result(pe_, pending.call.collective) : Status{};
        if (++round.left == pending.team.size) job_->rounds_.erase(pending.key);
        pending_.erase(request);
        return done;
    }
    void abandon(std::uint64_t request) override {
        const std::lock_guard guard(job_->lock_);
        job_->abandoned += static_cast<int>(pending_.erase(request));
    }

protected:
    using Sources = std::vector<std::vector<std::byte>>;

    // For derived fakes with a defect.
    [[nodiscard]] virtual bool is_complete(const npushmem_coll_call&, int arrived, int size) const {
        return arrived == size;
    }
    // Writes the result of a call to `dest`.
    virtual void write_result(const npushmem_coll_call& call, const Sources& sources, int index,
                              std::byte* dest) const {
        const auto me = static_cast<std::size_t>(index);
        switch (call.collective) {
            case NPUSHMEM_COLL_BARRIER: break;
            case NPUSHMEM_COLL_BROADCAST:
                if (index != call.root) copy(sources[static_cast<std::size_t>(call.root)], 0, call.count, dest);
                break;
            case NPUSHMEM_COLL_COLLECT:
            case NPUSHMEM_COLL_FCOLLECT:
                for (const auto& source : sources) dest = copy(source, 0, source.size(), dest);
                break;
            case NPUSHMEM_COLL_ALLTOALL:
                for (const auto& source : sources) dest = copy(source, me * call.count, call.count, dest);
                break;
            case NPUSHMEM_COLL_REDUCE: reduce(call, sources, 0, dest); break;
            default: reduce(call, sources, me * call.count, dest); break;
        }
    }

private:
    struct Team {
        std::uint64_t job_id;  // equal on all members
        int size;
        int index;
        std::uint64_t calls;
    };
    struct Pending {
        Team team;
        FakeCollectivesJob::RoundKey key;
        npushmem_coll_call call;
        std::vector<std::uint64_t> counts;
    };

    [[nodiscard]] bool is_complete(const npushmem_coll_call& call, const FakeCollectivesJob::Round& round,
                                   int size) const {
        return is_complete(call, round.arrived, size);
    }
    void deliver(const Pending& pending, const FakeCollectivesJob::Round& round) const {
        write_result(pending.call, round.sources, pending.team.index, static_cast<std::byte*>(pending.call.dest));
    }

    static std::size_t size_of(std::uint32_t type) {
        return type == NPUSHMEM_COLL_I32 || type == NPUSHMEM_COLL_F32 ? 4 : 8;
    }
    static std::size_t source_bytes(const Team& team, const npushmem_coll_call& call) {
        const auto members = static_cast<std::uint64_t>(team.size);
        switch (call.collective) {
            case NPUSHMEM_COLL_BARRIER: return 0;
            case NPUSHMEM_COLL_BROADCAST: return team.index == call.root ? call.count : 0;
            case NPUSHMEM_COLL_ALLTOALL: return call.count * members;
            case NPUSHMEM_COLL_REDUCE: return call.count * size_of(call.type);
            case NPUSHMEM_COLL_REDUCESCATTER: return call.count * members * size_of(call.type);
            default: return call.count;
        }
    }
    static std::byte* copy(const std::vector<std::byte>& source, std::size_t from, std::size_t bytes, std::byte* to) {
        const std::size_t left = from < source.size() ? source.size() - from : 0;
        const std::size_t copied = std::min(bytes, left);
        if (copied > 0) std::memcpy(to, source.data() + from, copied);
        return to + bytes;
    }

    template <class T>
    static T combine(std::uint32_t operation, T a, T b) {
        switch (operation) {
            // Of a NaN, which is in no order, the sum is NaN.
            case NPUSHMEM_COLL_MAX: return a <= b ? b : b <= a ? a : a + b;
            case NPUSHMEM_COLL_MIN: return a <= b ? a : b <= a ? b : a + b;
            case NPUSHMEM_COLL_SUM: return a + b;
            case NPUSHMEM_COLL_PROD: return a * b;
            default: break;
        }
        if constexpr (std::is_integral_v<T>)
            return operation == NPUSHMEM_COLL_AND ? (a & b) : operation == NPUSHMEM_COLL_OR ? (a | b) : (a ^ b);
        else
            return a;
    }
    template <class T>
    static void reduce_as(const npushmem_coll_call& call, const Sources& sources, std::size_t first, std::byte* dest) {
        for (std::uint64_t i = 0; i < call.count; ++i) {
            T sum{};
            for (std::size_t member = 0; member < sources.size(); ++member) {
                T with{};
                std::memcpy(&with, sources[member].data() + (first + i) * sizeof(T), sizeof(T));
                sum = member == 0 ? with : combine(call.operation, sum, with);
            }
            std::memcpy(dest + i * sizeof(T), &sum, sizeof(T));
        }
    }
    static void reduce(const npushmem_coll_call& call, const Sources& sources, std::size_t first, std::byte* dest) {
        switch (call.type) {
            case NPUSHMEM_COLL_I32: return reduce_as<std::int32_t>(call, sources, first, dest);
            case NPUSHMEM_COLL_I64: return reduce_as<std::int64_t>(call, sources, first, dest);
            case NPUSHMEM_COLL_F32: return reduce_as<float>(call, sources, first, dest);
            default: return reduce_as<double>(call, sources, first, dest);
        }
    }

    std::shared_ptr<FakeCollectivesJob> job_;
    int pe_;
    std::string description_;
    std::uint64_t next_id_ = 1;
    std::map<std::uint64_t, Team> teams_;
    std::map<std::uint64_t, Pending> pending_;
};

}  // namespace npushmem::fakes
