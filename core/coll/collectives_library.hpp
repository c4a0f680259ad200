// SPDX-License-Identifier: BSD-3-Clause
// Collectives of another library, behind the interface of npushmem/plugin/collectives.h: which calls it serves, and its
// use by one team. All PEs of the job make the same choices, because these depend on values that are equal on all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/wait.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/coll/group.hpp"
#include "npushmem/plugin/collectives.hpp"

namespace npushmem::coll {

// What a library supports. Plain bytes, which PEs exchange.
class LibraryCapabilities {
public:
    static LibraryCapabilities of(const Collectives& library);

    [[nodiscard]] bool has(std::uint32_t collective, std::uint32_t operation, std::uint32_t type) const;
    // Removes what `other` lacks.
    void intersect(const LibraryCapabilities& other);
    // "barrier, broadcast, reduce (sum of 13 types, ...)".
    [[nodiscard]] std::string describe() const;

private:
    static constexpr std::uint32_t operations = NPUSHMEM_COLL_PROD + 1;

    std::array<std::array<std::uint64_t, operations>, collective_count> sets_{};  // by collective and operation
};

// The library of a job. Any thread.
class CollectivesLibrary {
public:
    using LogLine = std::function<void(const std::string&)>;

    // `agreed`: what all PEs support. `tuning` outlives this. `log` receives the choices of teams.
    CollectivesLibrary(std::string name, std::unique_ptr<Collectives> instance, const LibraryCapabilities& agreed,
                       const barrier::Tuning& tuning, LogLine log)
        : name_(std::move(name)),
          instance_(std::move(instance)),
          agreed_(agreed),
          tuning_(tuning),
          log_(std::move(log)) {}
    CollectivesLibrary(const CollectivesLibrary&) = delete;
    CollectivesLibrary& operator=(const CollectivesLibrary&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] Collectives& instance() const { return *instance_; }
    [[nodiscard]] bool supports(const npushmem_coll_call& call) const {
        return agreed_.has(call.collective, call.operation, call.type);
    }
    // Returns whether the tuning file leaves this call to the library; `bytes` of each member.
    [[nodiscard]] bool is_chosen(std::uint32_t collective, std::uint64_t bytes,
                                 const barrier::BarrierSelectionInput& input) const;
    void log(const std::string& line) const { log_(line); }

    void count(std::uint32_t collective, bool by_library) {
        counts_[collective][by_library ? 1 : 0].fetch_add(1, std::memory_order_relaxed);
    }
    // Returns one line, "collectives of this PE: broadcast 3 mpi, 2 npushmem; ...": its calls by library.
    [[nodiscard]] std::string describe_counts() const;

private:
    std::string name_;
    std::unique_ptr<Collectives> instance_;
    LibraryCapabilities agreed_;
    const barrier::Tuning& tuning_;
    LogLine log_;
    std::array<std::array<std::atomic<std::uint64_t>, 2>, collective_count> counts_{};  // npushmem, the library
};

// The library's counterpart of a team. It is created by the team's first call that the library serves. One thread at a
// time.
class LibraryTeam {
public:
    // A team of at least two members, as its user describes it.
    struct Description {
        std::vector<int> pes;  // by member
        std::uint32_t number;  // see npushmem_coll_team
        barrier::BarrierSelectionInput input;
        std::string name;  // for messages
    };

    // `library`, `group` and `waiter` outlive this. `timeout` 0: none.
    LibraryTeam(CollectivesLibrary& library, Group& group, Description description, const Waiter& waiter,
                std::chrono::nanoseconds timeout);
    LibraryTeam(const LibraryTeam&) = delete;
    LibraryTeam& operator=(const LibraryTeam&) = delete;
    ~LibraryTeam();

    // Runs the call in the library; `bytes` of each member select it. Returns nothing if npushmem's own algorithm has
    // to run, on all members alike.
    std::optional<Status> run(npushmem_coll_call call, std::uint64_t bytes);
    // Returns whether barriers are left to the library.
    [[nodiscard]] bool has_barrier() const;

    enum class Selection { by_rules, own, library };
    // Replaces the rules of the tuning file; equal on all members.
    void select(Selection selection) { selection_ = selection; }

    // Returns why the library does not serve the team, as its first call has found, equally on all members; ok: it
    // does, or no call has asked.
    [[nodiscard]] const Status& refusal() const { return refusal_; }
    // Returns why the last call failed; ok: none has.
    [[nodiscard]] const Status& failure() const { return failure_; }

private:
    enum class State { unused, created, refused };

    [[nodiscard]] bool is_chosen(const npushmem_coll_call& call, std::uint64_t bytes) const;
    Status create();
    std::optional<Status> run_created(const npushmem_coll_call& call);
    Status wait_for(std::uint64_t request, std::uint32_t collective);

    CollectivesLibrary& library_;
    Group& group_;
    Description description_;
    Waiter waiter_;
    std::chrono::nanoseconds timeout_;
    Selection selection_ = Selection::by_rules;
    State state_ = State::unused;
    std::uint64_t id_ = 0;
    Status refusal_;
    Status failure_;
};

}  // namespace npushmem::coll
