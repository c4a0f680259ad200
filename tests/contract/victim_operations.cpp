// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/victim_operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t victim_bulk_bytes = 256 << 10;
constexpr std::uint64_t victim_bulk_offset = 1 << 20;
constexpr std::uint64_t victim_handle_offset = 2 << 20;
constexpr std::uint64_t after_queue_salt = 4711;

bool is_transfer(Work work) {
    return work == Work::puts || work == Work::gets || work == Work::atomics || work == Work::put_signals ||
           work == Work::strided_puts;
}

}  // namespace

bool reports_death(const Pe& pe, int other) {
    return pe.is_connected(other) && pe.reach(other).has(NPUSHMEM_CAP_REPORTS_DEATH);
}

int LossEvents::count(int lost) {
    npushmem_event event{};
    event.struct_size = sizeof event;
    while (pe_.transport().poll_event(event) == Code::ok) {
        if (!is_loss(static_cast<Code>(event.code))) continue;
        EXPECT_FALSE(text_of(event.message).empty()) << "an event without a message about PE " << event.pe;
        ++counts_[event.pe];
    }
    return counts_[lost];
}

void LossEvents::await(int lost) {
    EXPECT_EQ(pe_.until([&] { return count(lost) > 0; }), Code::ok) << "no event reports the death of PE " << lost;
}

VictimOperations::VictimOperations(Pe& pe, Work work)
    : pe_(pe), work_(work), bulk_(victim_bulk_bytes), source_(std::make_shared<SharedFile>(4096), 0, 4096) {
    auto made = pe.transport().create_queue();
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made.ok()) queue_ = made.value();
}

VictimOperations::~VictimOperations() {
    if (queue_ != 0) (void)pe_.transport().destroy_queue(queue_);
}

void VictimOperations::call_often() {
    constexpr int calls = 200;
    if (!is_possible(work_)) return;
    for (int i = 0; i < calls; ++i) {
        (void)call(work_);
        (void)pe_.transport().progress();
    }
}

void VictimOperations::expect_that_calls_fail() {
    const Work work = is_transfer(work_) ? work_ : Work::puts;
    if (!is_possible(work)) return;
    EXPECT_EQ(pe_.until([&] { return is_loss(call(work)); }), Code::ok) << "operations to a dead PE do not fail";
    Code last = Code::again;
    EXPECT_EQ(pe_.until([&] { return (last = pe_.transport().quiet(queue_)) != Code::again; }), Code::ok)
        << "quiet waits for a dead PE";
    EXPECT_LE(static_cast<int>(last), static_cast<int>(Code::ok));
}

void VictimOperations::end() {
    EXPECT_EQ(pe_.transport().destroy_queue(queue_), Code::ok);
    queue_ = 0;
    bulk_ = pattern(victim_bulk_bytes, after_queue_salt);
    word_ = after_queue_salt;
}

void VictimOperations::expect_untouched_memory() const {
    EXPECT_TRUE(same(bulk_, pattern(victim_bulk_bytes, after_queue_salt)))
        << "a buffer was written after destroy_queue";
    EXPECT_EQ(word_, after_queue_salt) << "a result was written after destroy_queue";
}

void VictimOperations::give_handle(Pe& victims) {
    const Bytes handle = victims.handle();
    const std::uint64_t size = handle.size();
    for (const int to : survivors) {
        if (!victims.is_connected(to) || !victims.reach(to).has(NPUSHMEM_CAP_PUT)) continue;
        EXPECT_EQ(victims.put(to, victim_handle_offset, &size, sizeof size), Code::ok);
        EXPECT_EQ(victims.put(to, victim_handle_offset + sizeof size, handle.data(), size), Code::ok);
        EXPECT_EQ(victims.quiet(), Code::ok);
    }
}

bool VictimOperations::is_possible(Work work) const {
    if (!pe_.is_connected(victim)) return false;
    const Reach& reach = pe_.reach(victim);
    switch (work) {
        case Work::puts:
        case Work::fences_and_quiets: return reach.has(NPUSHMEM_CAP_PUT);
        case Work::gets: return reach.has(NPUSHMEM_CAP_GET);
        case Work::atomics: return (reach.atomic_64 >> NPUSHMEM_ATOMIC_FETCH_ADD & 1U) != 0;
        case Work::put_signals: return reach.has(NPUSHMEM_CAP_PUT_SIGNAL);
        case Work::strided_puts: return reach.has(NPUSHMEM_CAP_PUT_STRIDED);
        case Work::registrations: return true;
        case Work::nothing: return false;
    }
    return false;
}

Code VictimOperations::call(Work work) {
    switch (work) {
        case Work::puts: return pe_.transport().put(queue_, bulk(), nullptr);
        case Work::gets: return pe_.transport().get(queue_, bulk(), nullptr);
        case Work::atomics: return update();
        case Work::put_signals: return put_and_signal();
        case Work::strided_puts: return put_strided();
        case Work::fences_and_quiets: return put_fence_quiet();
        case Work::registrations: return register_and_import();
        case Work::nothing: break;
    }
    return Code::ok;
}

npushmem_rma VictimOperations::bulk() { return pe_.rma(victim, victim_bulk_offset, bulk_.data(), bulk_.size()); }

Code VictimOperations::update() {
    npushmem_atomic op = pe_.atomic_op(victim, 0, NPUSHMEM_ATOMIC_FETCH_ADD, 8);
    op.operand = 1;
    op.result = &word_;
    return pe_.transport().atomic(queue_, op, nullptr);
}

Code VictimOperations::put_and_signal() {
    npushmem_put_signal op{};
    op.data = bulk();
    op.signal_remote = op.data.remote;
    op.signal = 1;
    return pe_.transport().put_signal(queue_, op, nullptr);
}

Code VictimOperations::put_strided() {
    npushmem_put_strided op{bulk(), NPUSHMEM_PUT_STRIDED_MAX / 8, 24, 8};
    op.block.bytes = 8;
    return pe_.transport().put_strided(queue_, op, nullptr);
}

Code VictimOperations::put_fence_quiet() {
    Transport& transport = pe_.transport();
    const Code posted = transport.put(queue_, pe_.rma(victim, victim_bulk_offset, bulk_.data(), 8), nullptr);
    if (posted != Code::ok) return posted;
    const Code fenced = transport.fence(queue_);
    return fenced == Code::ok ? transport.quiet(queue_) : fenced;
}

// This PE's own memory does not depend on the victim. The import of the victim's memory may fail.
Code VictimOperations::register_and_import() {
    Transport& transport = pe_.transport();
    const auto registered = transport.register_memory(source_.describe());
    EXPECT_TRUE(registered.ok()) << registered.status().message();
    if (!registered.ok()) return registered.status().code();
    const auto size = word_at(pe_.memory(), victim_handle_offset);
    Code code = Code::ok;
    if (size > 0 && size <= NPUSHMEM_HANDLE_MAX) {
        const auto imported =
            transport.import_memory(victim, pe_.memory().subspan(victim_handle_offset + sizeof size, size));
        EXPECT_TRUE(imported.ok() || !imported.status().message().empty()) << "an error without a message";
        code = imported.ok() ? transport.release_memory(imported.value()) : imported.status().code();
    }
    EXPECT_EQ(transport.deregister_memory(registered.value().region), Code::ok);
    return code;
}

}  // namespace npushmem::contract
