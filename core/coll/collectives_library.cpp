// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/collectives_library.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/base/parking.hpp"
#include "core/coll/collectives.hpp"

namespace npushmem::coll {

namespace {

constexpr std::array<std::string_view, NPUSHMEM_COLL_PROD + 1> operation_names{"and", "or",  "xor", "max",
                                                                               "min", "sum", "prod"};

// The numbers of the interface are those of the kernels.
static_assert(static_cast<int>(ReduceOperation::and_) == NPUSHMEM_COLL_AND);
static_assert(static_cast<int>(ReduceOperation::max) == NPUSHMEM_COLL_MAX);
static_assert(static_cast<int>(ReduceOperation::prod) == NPUSHMEM_COLL_PROD);
static_assert(static_cast<int>(ReduceElement::i8) == NPUSHMEM_COLL_I8);
static_assert(static_cast<int>(ReduceElement::u8) == NPUSHMEM_COLL_U8);
static_assert(static_cast<int>(ReduceElement::f16) == NPUSHMEM_COLL_F16);
static_assert(static_cast<int>(ReduceElement::f80) == NPUSHMEM_COLL_F80);
static_assert(static_cast<int>(ReduceElement::c64) == NPUSHMEM_COLL_C64);

bool is_reduction(std::uint32_t collective) { return collective >= NPUSHMEM_COLL_REDUCE; }

// The library completes a call only by `test`, so a long sleep would delay every round of its algorithm.
WaitBudget budget_for_tests(WaitBudget budget) {
    budget.first_sleep = budget.longest_sleep = std::chrono::microseconds{20};
    return budget;
}

}  // namespace

LibraryCapabilities LibraryCapabilities::of(const Collectives& library) {
    LibraryCapabilities out;
    for (std::uint32_t collective = 0; collective < collective_count; ++collective)
        for (std::uint32_t operation = 0; operation < (is_reduction(collective) ? operations : 1); ++operation)
            out.sets_[collective][operation] = library.supports(collective, operation);
    return out;
}

bool LibraryCapabilities::has(std::uint32_t collective, std::uint32_t operation, std::uint32_t type) const {
    const std::uint64_t set = sets_[collective][operation];
    return is_reduction(collective) ? (set >> type & 1) != 0 : set != 0;
}

void LibraryCapabilities::intersect(const LibraryCapabilities& other) {
    for (std::uint32_t collective = 0; collective < collective_count; ++collective)
        for (std::uint32_t operation = 0; operation < operations; ++operation)
            sets_[collective][operation] &= other.sets_[collective][operation];
}

std::string LibraryCapabilities::describe() const {
    std::string text;
    const auto append = [&text](std::string_view part) { text.append(text.empty() ? "" : ", ").append(part); };
    for (std::uint32_t collective = 0; collective < collective_count; ++collective) {
        std::string types;
        for (std::uint32_t operation = 0; operation < operations && is_reduction(collective); ++operation)
            if (const int number = std::popcount(sets_[collective][operation]); number > 0)
                types += fmt::format("{}{}:{}", types.empty() ? "" : " ", operation_names[operation], number);
        if (!is_reduction(collective) && sets_[collective][0] != 0) append(collective_names.at(collective));
        if (!types.empty()) append(fmt::format("{} (types by operation: {})", collective_names.at(collective), types));
    }
    return text.empty() ? "nothing" : text;
}

bool CollectivesLibrary::is_chosen(std::uint32_t collective, std::uint64_t bytes,
                                   const barrier::BarrierSelectionInput& input) const {
    const barrier::LibraryRule* const rule =
        tuning_.find_library(collective_names.at(collective), static_cast<double>(bytes), input);
    return rule == nullptr || rule->library == name_;
}

std::string CollectivesLibrary::describe_counts() const {
    std::string text;
    for (std::uint32_t collective = 0; collective < collective_count; ++collective) {
        const std::uint64_t own = counts_[collective][0].load(std::memory_order_relaxed);
        const std::uint64_t theirs = counts_[collective][1].load(std::memory_order_relaxed);
        if (own + theirs != 0)
            text += fmt::format("{} {} {} {}, {} npushmem", text.empty() ? "" : ";", collective_names.at(collective),
                                theirs, name_, own);
    }
    return fmt::format("collectives of this PE:{}", text.empty() ? " none" : text);
}

namespace {

// The exchange of data between the members of a team that the library creates. Each step gathers one record of every
// member; one that has ended its create_team takes part with its result. So all members make equally many steps and
// reach the same result, whatever fails where.
class TeamCreation {
public:
    explicit TeamCreation(Group& group) : group_(group), all_(static_cast<std::size_t>(group.size())) {}

    static std::int32_t allgather(void* context, const void* send, std::uint64_t bytes, void* receive,
                                  npushmem_error* error) {
        return report(static_cast<TeamCreation*>(context)->gather(send, bytes, receive), error);
    }

    // Ends this member's creation. Returns the first failure of any member.
    Status end(const Status& own) {
        if (!ended_.ok()) return ended_;
        Record mine{};
        mine.step = Step::end;
        mine.code = static_cast<std::int32_t>(own.code());
        (void)own.message().copy(mine.payload, sizeof mine.payload - 1);
        if (exchange(mine).ok()) check(mine);
        return ended_;
    }
    // Returns whether the members no longer agree, because one is dead or late.
    [[nodiscard]] bool is_broken() const { return broken_; }

private:
    enum class Step : std::uint32_t { exchange, end };
    struct Record {
        Step step;
        std::int32_t code;
        std::uint64_t bytes;
        char payload[NPUSHMEM_COLL_EXCHANGE_BYTES];
    };
    static_assert(sizeof(Record) <= Workspace::contribution_bytes);

    Status gather(const void* send, std::uint64_t bytes, void* receive) {
        if (!ended_.ok()) return ended_;
        Record mine{};
        mine.step = Step::exchange;
        mine.bytes = bytes;
        const bool fits = bytes <= sizeof mine.payload;
        if (fits) std::memcpy(mine.payload, send, bytes);
        if (Status done = exchange(mine); !done.ok()) return done;
        check(mine);
        if (ended_.ok() && !fits)
            ended_ = {Code::range,
                      fmt::format("an exchange of {} bytes; at most {} are allowed", bytes, sizeof mine.payload)};
        if (!ended_.ok()) return ended_;
        auto* to = static_cast<std::byte*>(receive);
        for (const Record& record : all_) {
            std::memcpy(to, record.payload, bytes);
            to += bytes;
        }
        return {};
    }
    Status exchange(const Record& mine) {
        Status done = gather_small(group_, &mine, sizeof mine, all_.data());
        if (done.ok()) return done;
        broken_ = true;
        return ended_ = done;
    }
    // All members must be at the same step, with the same number of bytes, and without a failure. A failure is the
    // cause of a difference, so all members report it.
    void check(const Record& mine) {
        for (std::size_t member = 0; member < all_.size() && ended_.ok(); ++member)
            if (const Record& other = all_[member]; other.code != 0)
                ended_ = {static_cast<Code>(other.code), fmt::format("member {}: {}", member, text_of(other.payload))};
        for (std::size_t member = 0; member < all_.size() && ended_.ok(); ++member)
            if (const Record& other = all_[member]; other.step != mine.step || other.bytes != mine.bytes)
                ended_ = {Code::mismatch, fmt::format("the library exchanges other data on member {} than on member {}",
                                                      member, group_.index())};
    }

    Group& group_;
    std::vector<Record> all_;
    Status ended_;  // the failure that ended the creation
    bool broken_ = false;
};

}  // namespace

LibraryTeam::LibraryTeam(CollectivesLibrary& library, Group& group, Description description, const Waiter& waiter,
                         std::chrono::nanoseconds timeout)
    : library_(library),
      group_(group),
      description_(std::move(description)),
      waiter_(waiter, budget_for_tests(waiter.budget())),
      timeout_(timeout) {}

LibraryTeam::~LibraryTeam() {
    if (state_ == State::created) library_.instance().destroy_team(id_);
}

bool LibraryTeam::is_chosen(const npushmem_coll_call& call, std::uint64_t bytes) const {
    if (state_ == State::refused || selection_ == Selection::own || !library_.supports(call)) return false;
    return selection_ == Selection::library || library_.is_chosen(call.collective, bytes, description_.input);
}

bool LibraryTeam::has_barrier() const {
    npushmem_coll_call call{};
    call.collective = NPUSHMEM_COLL_BARRIER;
    return is_chosen(call, 0);
}

std::optional<Status> LibraryTeam::run(npushmem_coll_call call, std::uint64_t bytes) {
    call.struct_size = sizeof call;
    const std::uint32_t collective = call.collective;
    std::optional<Status> done;
    if (is_chosen(call, bytes)) {
        if (failure_.ok() && state_ == State::unused) failure_ = create();
        if (!failure_.ok())
            done = failure_;
        else if (state_ == State::created)
            done = run_created(call);
    }
    library_.count(collective, done.has_value());
    return done;
}

Status LibraryTeam::create() {
    // The library may wait for all members, without an end. So they must all be there.
    if (Status present = group_.sync(); !present.ok()) return present;
    TeamCreation creation(group_);
    npushmem_coll_team team{};
    team.struct_size = sizeof team;
    team.size = group_.size();
    team.index = group_.index();
    team.number = description_.number;
    team.pes = description_.pes.data();
    team.context = &creation;
    team.allgather = TeamCreation::allgather;
    const auto created = library_.instance().create_team(team);
    const Status agreed = creation.end(created.status());
    if (created.ok()) id_ = created.value();
    if (created.ok() && !agreed.ok()) library_.instance().destroy_team(id_);
    if (creation.is_broken()) return agreed;
    state_ = agreed.ok() ? State::created : State::refused;
    refusal_ = agreed;
    library_.log(agreed.ok() ? fmt::format("the team {} uses {}", description_.name, library_.name())
                             : fmt::format("the team {} uses npushmem's own collectives and not {}: {}",
                                           description_.name, library_.name(), agreed.message()));
    return {};
}

// Fences: the library's data path orders the PEs, but is no synchronisation that the compiler or our other stores know.
std::optional<Status> LibraryTeam::run_created(const npushmem_coll_call& call) {
    full_fence();
    std::uint64_t request = 0;
    Status done = library_.instance().start(id_, call, request);
    if (done.code() == Code::unsupported) return std::nullopt;
    if (done.code() == Code::again) done = wait_for(request, call.collective);
    full_fence();
    if (!done.ok())
        failure_ = done.within(fmt::format("{} by {}", collective_names.at(call.collective), library_.name()));
    return failure_;
}

Status LibraryTeam::wait_for(std::uint64_t request, std::uint32_t collective) {
    Status done;
    const auto complete = [&] {
        done = library_.instance().test(request);
        return done.code() != Code::again;
    };
    WaitFor what{.what = "the other PEs in a collective of another library", .timeout = timeout_};
    what.needs = {0, 1, group_.size(), description_.pes.data()};
    what.is_stepwise = true;
    WaitFailure failure;
    const Code code = waiter_.until(complete, what, &failure);
    if (code == Code::ok) return done;
    library_.instance().abandon(request);
    library_.log(fmt::format("{}: the call is abandoned", collective_names.at(collective)));
    return {code, describe(what, failure)};
}

}  // namespace npushmem::coll
