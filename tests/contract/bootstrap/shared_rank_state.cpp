// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/bootstrap/shared_rank_state.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <system_error>

namespace npushmem::contract {
namespace {

constexpr std::size_t text_bytes = 512;

std::size_t copy_text(const std::string& text, char* to) {
    const std::size_t length = text.copy(to, text_bytes - 1);
    to[length] = '\0';
    return length;
}

struct IdSlot {
    std::atomic<bool> published{false};
    std::int32_t code = NPUSHMEM_OK;
    JobId id{};
    char why[text_bytes]{};
};

}  // namespace

struct SharedRankState::PerRank {
    std::atomic<int> stage{0};
    std::atomic<pid_t> process{0};
    std::atomic<bool> ended{false};
    std::atomic<bool> kill_expected{false};
    std::atomic<bool> finished{false};
};

struct SharedRankState::Shared {
    std::atomic<std::uint32_t> changes{0};  // the futex of all waits
    std::array<IdSlot, max_ids> ids;
    std::atomic<bool> skipped{false};
    char skip_reason[text_bytes]{};
};

SharedRankState::SharedRankState(int ranks)
    : ranks_(ranks), bytes_(sizeof(Shared) + alignof(PerRank) + sizeof(PerRank) * static_cast<std::size_t>(ranks)) {
    static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
    static_assert(sizeof(Shared) % alignof(PerRank) == 0);
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "memory that the ranks of a case share");
    shared_ = new (memory) Shared;
    for (int rank = 0; rank < ranks; ++rank) new (&of(rank)) PerRank;
}

SharedRankState::~SharedRankState() { ::munmap(static_cast<void*>(shared_), bytes_); }

SharedRankState::PerRank& SharedRankState::of(int rank) const { return reinterpret_cast<PerRank*>(shared_ + 1)[rank]; }

void SharedRankState::changed() {
    shared_->changes.fetch_add(1);
    // Not FUTEX_PRIVATE_FLAG, and so not std::atomic::notify_all: the waiting threads are those of other processes.
    (void)::syscall(SYS_futex, &shared_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedRankState::await(const std::function<bool()>& happened) {
    for (;;) {
        const std::uint32_t seen = shared_->changes.load();
        if (happened()) return;
        (void)::syscall(SYS_futex, &shared_->changes, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    }
}

void SharedRankState::reach(int rank, int stage) {
    of(rank).stage.store(stage);
    changed();
}

int SharedRankState::stage_of(int rank) const { return of(rank).stage.load(); }

bool SharedRankState::await(int rank, int stage) {
    await([&] { return stage_of(rank) >= stage || has_ended(rank); });
    return stage_of(rank) >= stage;
}

void SharedRankState::started(int rank, pid_t process) {
    of(rank).process.store(process);
    changed();
}

pid_t SharedRankState::process_of(int rank) {
    await([&] { return of(rank).process.load() != 0; });
    return of(rank).process.load();
}

void SharedRankState::ended(int rank) {
    of(rank).ended.store(true);
    changed();
}

bool SharedRankState::has_ended(int rank) const { return of(rank).ended.load(); }

void SharedRankState::await_end(int rank) {
    await([&] { return has_ended(rank); });
}

void SharedRankState::finished(int rank) {
    of(rank).finished.store(true);
    changed();
}

bool SharedRankState::has_finished(int rank) const { return of(rank).finished.load(); }

void SharedRankState::await_finish(int rank) {
    await([&] { return has_finished(rank) || has_ended(rank); });
}

void SharedRankState::expect_kill(int rank) { of(rank).kill_expected.store(true); }

bool SharedRankState::is_kill_expected(int rank) const { return of(rank).kill_expected.load(); }

void SharedRankState::publish_id(int number, const Status& made, const JobId& id) {
    IdSlot& slot = shared_->ids[static_cast<std::size_t>(number)];
    slot.code = static_cast<std::int32_t>(made.code());
    slot.id = id;
    copy_text(made.message(), slot.why);
    slot.published.store(true);
    changed();
}

bool SharedRankState::has_id(int number) const {
    return shared_->ids[static_cast<std::size_t>(number)].published.load();
}

Result<JobId> SharedRankState::await_id(int number, int maker) {
    const IdSlot& slot = shared_->ids[static_cast<std::size_t>(number)];
    await([&] { return slot.published.load() || has_ended(maker); });
    if (!slot.published.load())
        return Status{Code::peer_dead, "rank " + std::to_string(maker) + " ended before it had made the job's id"};
    if (slot.code != NPUSHMEM_OK) return Status{static_cast<Code>(slot.code), slot.why};
    return slot.id;
}

void SharedRankState::set_skip_reason(const std::string& reason) {
    if (!shared_->skipped.exchange(true)) copy_text(reason, shared_->skip_reason);
}

std::string SharedRankState::skip_reason() const { return shared_->skip_reason; }

}  // namespace npushmem::contract
