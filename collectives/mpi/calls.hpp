// SPDX-License-Identifier: BSD-3-Clause
// MPI's collectives, looked up in the process. One source for each library includes this file, after that library's
// mpi.h. Everything is in an unnamed namespace, because the types differ between libraries.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <climits>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "collectives/mpi/mpi_process.hpp"

namespace npushmem::mpi {
namespace {

constexpr std::size_t types = NPUSHMEM_COLL_C64 + 1;
constexpr std::size_t operations = NPUSHMEM_COLL_PROD + 1;

struct Calls {
    decltype(&MPI_Query_thread) query_thread = nullptr;
    decltype(&MPI_Finalized) finalized = nullptr;
    decltype(&MPI_Comm_rank) comm_rank = nullptr;
    decltype(&MPI_Comm_size) comm_size = nullptr;
    decltype(&MPI_Comm_group) comm_group = nullptr;
    decltype(&MPI_Group_incl) group_incl = nullptr;
    decltype(&MPI_Group_free) group_free = nullptr;
    decltype(&MPI_Comm_create_group) comm_create_group = nullptr;
    decltype(&MPI_Comm_set_errhandler) comm_set_errhandler = nullptr;
    decltype(&MPI_Comm_free) comm_free = nullptr;
    decltype(&MPI_Error_string) error_string = nullptr;
    decltype(&MPI_Ibarrier) ibarrier = nullptr;
    decltype(&MPI_Ibcast) ibcast = nullptr;
    decltype(&MPI_Iallgather) iallgather = nullptr;
    decltype(&MPI_Iallgatherv) iallgatherv = nullptr;
    decltype(&MPI_Ialltoall) ialltoall = nullptr;
    decltype(&MPI_Iallreduce) iallreduce = nullptr;
    decltype(&MPI_Ireduce_scatter_block) ireduce_scatter_block = nullptr;
    decltype(&MPI_Test) test = nullptr;

    // The predefined objects, which each library has in its own way.
    MPI_Comm world{};
    MPI_Errhandler errors_return{};
    MPI_Datatype byte{};
    std::array<MPI_Datatype, types> type{};  // of F16 and BF16: none
    std::array<MPI_Op, operations> operation{};
};

template <class Function>
bool look_up(const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    return into != nullptr;
}

inline Result<Calls> find_calls() {
    Calls c;
    const bool all = look_up("MPI_Query_thread", c.query_thread) && look_up("MPI_Finalized", c.finalized) &&
                     look_up("MPI_Comm_rank", c.comm_rank) && look_up("MPI_Comm_size", c.comm_size) &&
                     look_up("MPI_Comm_group", c.comm_group) && look_up("MPI_Group_incl", c.group_incl) &&
                     look_up("MPI_Group_free", c.group_free) && look_up("MPI_Comm_create_group", c.comm_create_group) &&
                     look_up("MPI_Comm_set_errhandler", c.comm_set_errhandler) &&
                     look_up("MPI_Comm_free", c.comm_free) && look_up("MPI_Error_string", c.error_string) &&
                     look_up("MPI_Ibarrier", c.ibarrier) && look_up("MPI_Ibcast", c.ibcast) &&
                     look_up("MPI_Iallgather", c.iallgather) && look_up("MPI_Iallgatherv", c.iallgatherv) &&
                     look_up("MPI_Ialltoall", c.ialltoall) && look_up("MPI_Iallreduce", c.iallreduce) &&
                     look_up("MPI_Ireduce_scatter_block", c.ireduce_scatter_block) && look_up("MPI_Test", c.test);
    if (!all) return Status{Code::unsupported, "the MPI library in this process lacks a function of MPI 3"};
    return c;
}

// A call in progress: what must stay until MPI has completed it.
struct PendingCall {
    MPI_Request request{};
    std::vector<int> counts;
    std::vector<int> offsets;
    // A result that must not overwrite the source while others read it, and its place.
    std::vector<std::byte> result;
    void* dest = nullptr;
};

class MpiCollectives final : public Collectives {
public:
    MpiCollectives(const Calls& calls, int rank, std::string description)
        : calls_(calls), rank_(rank), description_(std::move(description)) {}

    [[nodiscard]] const std::string& description() const override { return description_; }
    [[nodiscard]] std::uint64_t supports(std::uint32_t collective, std::uint32_t operation) const override;
    Result<std::uint64_t> create_team(const npushmem_coll_team& team) override;
    void destroy_team(std::uint64_t id) override;
    Status start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) override;
    Status test(std::uint64_t request) override;
    // A collective of MPI cannot be cancelled: MPI may still use the memory, and the communicator stays.
    void abandon(std::uint64_t) override {}

private:
    struct Team {
        MPI_Comm communicator;
        int size;
        int index;
    };
    static Team& team_of(std::uint64_t id) { return *reinterpret_cast<Team*>(id); }

    [[nodiscard]] bool has_ended() const {
        int ended = 0;
        return calls_.finalized(&ended) != MPI_SUCCESS || ended != 0;
    }
    [[nodiscard]] Status failure(const char* what, int error) const;
    Result<std::vector<int>> ranks_of(const npushmem_coll_team& team) const;
    int begin(const Team& team, const npushmem_coll_call& call, PendingCall& pending) const;
    int begin_collect(const Team& team, const npushmem_coll_call& call, PendingCall& pending) const;
    int begin_reducescatter(const Team& team, const npushmem_coll_call& call, PendingCall& pending) const;

    Calls calls_;
    int rank_;  // in MPI_COMM_WORLD
    std::string description_;
};

constexpr std::uint64_t bit(unsigned type) { return std::uint64_t{1} << type; }
constexpr std::uint64_t integers = bit(NPUSHMEM_COLL_F16) - 1;
constexpr std::uint64_t numbers = integers | bit(NPUSHMEM_COLL_F32) | bit(NPUSHMEM_COLL_F64) | bit(NPUSHMEM_COLL_F80) |
                                  bit(NPUSHMEM_COLL_C32) | bit(NPUSHMEM_COLL_C64);

std::uint64_t MpiCollectives::supports(std::uint32_t collective, std::uint32_t operation) const {
    if (collective < NPUSHMEM_COLL_REDUCE) return operation == 0 ? 1 : 0;
    if (collective > NPUSHMEM_COLL_REDUCESCATTER || operation > NPUSHMEM_COLL_PROD) return 0;
    // MPI does not say what the maximum of a NaN is: libraries return other values, and different ones on the ranks.
    return operation <= NPUSHMEM_COLL_MIN ? integers : numbers;
}

Status MpiCollectives::failure(const char* what, int error) const {
    std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
    int length = 0;
    if (calls_.error_string(error, text.data(), &length) != MPI_SUCCESS) length = 0;
    return {Code::system, fmt::format("{} failed with error {}: {}", what, error,
                                      std::string_view(text.data(), static_cast<std::size_t>(length)))};
}

// PEs need not have the numbers of their ranks: the job may be a part of MPI_COMM_WORLD, or ordered in another way.
Result<std::vector<int>> MpiCollectives::ranks_of(const npushmem_coll_team& team) const {
    std::vector<int> ranks(static_cast<std::size_t>(team.size));
    Status gathered =
        gather_from_members(team, std::as_bytes(std::span(&rank_, 1)), std::as_writable_bytes(std::span(ranks)));
    if (!gathered.ok()) return gathered;
    if (std::set<int>(ranks.begin(), ranks.end()).size() == ranks.size()) return ranks;
    return Status{Code::unsupported,
                  "two members have the same rank in MPI_COMM_WORLD: they belong to different jobs of MPI"};
}

Result<std::uint64_t> MpiCollectives::create_team(const npushmem_coll_team& team) {
    if (has_ended()) return Status{Code::state, "MPI has ended: call MPI_Finalize after npushmem's end"};
    const auto ranks = ranks_of(team);
    if (!ranks.ok()) return ranks.status();
    MPI_Group world{};
    MPI_Group members{};
    if (const int error = calls_.comm_group(calls_.world, &world); error != MPI_SUCCESS)
        return failure("MPI_Comm_group", error);
    const int included = calls_.group_incl(world, team.size, ranks.value().data(), &members);
    (void)calls_.group_free(&world);
    if (included != MPI_SUCCESS) return failure("MPI_Group_incl", included);
    // MPI guarantees tags up to 32767; teams that exist at the same time have consecutive numbers.
    constexpr unsigned tags = 32767;
    auto made = std::make_unique<Team>(Team{{}, team.size, team.index});
    const int created =
        calls_.comm_create_group(calls_.world, members, static_cast<int>(team.number % tags), &made->communicator);
    (void)calls_.group_free(&members);
    if (created != MPI_SUCCESS) return failure("MPI_Comm_create_group", created);
    (void)calls_.comm_set_errhandler(made->communicator, calls_.errors_return);
    return reinterpret_cast<std::uint64_t>(made.release());
}

void MpiCollectives::destroy_team(std::uint64_t id) {
    const std::unique_ptr<Team> team(&team_of(id));
    // With a call that was abandoned, MPI keeps the communicator until that call ends.
    if (!has_ended()) (void)calls_.comm_free(&team->communicator);
}

// MPI counts in int.
bool counts_fit(std::uint64_t bytes, int members) {
    return bytes <= static_cast<std::uint64_t>(INT_MAX) / static_cast<std::uint64_t>(members);
}

int MpiCollectives::begin_collect(const Team& team, const npushmem_coll_call& call, PendingCall& pending) const {
    pending.counts.assign(call.counts, call.counts + team.size);
    pending.offsets.resize(pending.counts.size());
    std::exclusive_scan(pending.counts.begin(), pending.counts.end(), pending.offsets.begin(), 0);
    return calls_.iallgatherv(call.source, static_cast<int>(call.count), calls_.byte, call.dest, pending.counts.data(),
                              pending.offsets.data(), calls_.byte, team.communicator, &pending.request);
}

constexpr std::array<std::size_t, types> type_bytes{1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, sizeof(long double), 8, 16};

// In place MPI would leave the rest of the source undefined.
int MpiCollectives::begin_reducescatter(const Team& team, const npushmem_coll_call& call, PendingCall& pending) const {
    void* into = call.dest;
    if (call.source == call.dest) {
        pending.result.resize(call.count * type_bytes[call.type]);
        pending.dest = call.dest;
        into = pending.result.data();
    }
    return calls_.ireduce_scatter_block(call.source, into, static_cast<int>(call.count), calls_.type[call.type],
                                        calls_.operation[call.operation], team.communicator, &pending.request);
}

int MpiCollectives::begin(const Team& team, const npushmem_coll_call& call, PendingCall& pending) const {
    const auto count = static_cast<int>(call.count);
    switch (call.collective) {
        case NPUSHMEM_COLL_BARRIER: return calls_.ibarrier(team.communicator, &pending.request);
        case NPUSHMEM_COLL_BROADCAST:
            return calls_.ibcast(team.index == call.root ? const_cast<void*>(call.source) : call.dest, count,
                                 calls_.byte, call.root, team.communicator, &pending.request);
        case NPUSHMEM_COLL_COLLECT: return begin_collect(team, call, pending);
        case NPUSHMEM_COLL_FCOLLECT:
            return calls_.iallgather(call.source, count, calls_.byte, call.dest, count, calls_.byte, team.communicator,
                                     &pending.request);
        case NPUSHMEM_COLL_ALLTOALL:
            return calls_.ialltoall(call.source, count, calls_.byte, call.dest, count, calls_.byte, team.communicator,
                                    &pending.request);
        case NPUSHMEM_COLL_REDUCE:
            return calls_.iallreduce(call.source == call.dest ? MPI_IN_PLACE : call.source, call.dest, count,
                                     calls_.type[call.type], calls_.operation[call.operation], team.communicator,
                                     &pending.request);
        default: return begin_reducescatter(team, call, pending);
    }
}

Status MpiCollectives::start(std::uint64_t id, const npushmem_coll_call& call, std::uint64_t& request) {
    const Team& team = team_of(id);
    const bool reduction = call.collective >= NPUSHMEM_COLL_REDUCE;
    if (call.type >= types || (supports(call.collective, call.operation) >> (reduction ? call.type : 0) & 1) == 0)
        return {Code::unsupported, fmt::format("MPI has no collective {} with operation {} of type {}", call.collective,
                                               call.operation, call.type)};
    const bool fit = call.collective == NPUSHMEM_COLL_COLLECT
                         ? std::accumulate(call.counts, call.counts + team.size, std::uint64_t{0}) <= INT_MAX
                         : counts_fit(call.count, team.size);
    if (!fit) return {Code::unsupported, "MPI counts elements in int, in which these do not fit"};
    if (has_ended()) return {Code::state, "MPI has ended: call MPI_Finalize after npushmem's end"};
    auto pending = std::make_unique<PendingCall>();
    const int begun = begin(team, call, *pending);
    if (begun != MPI_SUCCESS) return failure("the start of MPI's collective", begun);
    request = reinterpret_cast<std::uint64_t>(pending.release());
    return test(request);
}

Status MpiCollectives::test(std::uint64_t request) {
    auto* const pending = reinterpret_cast<PendingCall*>(request);
    int done = 0;
    const int tested = calls_.test(&pending->request, &done, MPI_STATUS_IGNORE);
    if (tested == MPI_SUCCESS && done == 0) return {Code::again, {}};
    const std::unique_ptr<PendingCall> ended(pending);
    if (tested != MPI_SUCCESS) return failure("MPI's collective", tested);
    if (!ended->result.empty()) std::memcpy(ended->dest, ended->result.data(), ended->result.size());
    return {};
}

inline Status check_threads(const Calls& calls, const JobShape& job) {
    int level = MPI_THREAD_SINGLE;
    if (const int error = calls.query_thread(&level); error != MPI_SUCCESS)
        return {Code::state, fmt::format("MPI_Query_thread failed with error {}", error)};
    if (level == MPI_THREAD_MULTIPLE || job.one_thread) return {};
    return {Code::unsupported,
            "MPI was started without MPI_THREAD_MULTIPLE: call MPI_Init_thread with it, or set "
            "NPUSHMEM_COLL_MPI_ONE_THREAD=1 if one thread makes all calls of MPI and all collective calls"};
}

inline Result<std::unique_ptr<Collectives>> make_collectives(const Calls& calls, const JobShape& job,
                                                             std::string description) {
    if (Status threads = check_threads(calls, job); !threads.ok()) return threads;
    int rank = -1;
    int size = 0;
    if (calls.comm_rank(calls.world, &rank) != MPI_SUCCESS || calls.comm_size(calls.world, &size) != MPI_SUCCESS)
        return Status{Code::unsupported, "MPI_COMM_WORLD does not exist"};
    if (size < job.npes)
        return Status{
            Code::unsupported,
            fmt::format("MPI_COMM_WORLD has {} rank{}, the job has {} PEs: start it by the mpirun of this MPI", size,
                        size == 1 ? "" : "s", job.npes)};
    return std::unique_ptr<Collectives>(std::make_unique<MpiCollectives>(calls, rank, std::move(description)));
}

}  // namespace
}  // namespace npushmem::mpi
