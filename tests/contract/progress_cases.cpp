// SPDX-License-Identifier: BSD-3-Clause
// PEs in processes without failures: all to all, targets that make no call, and altered addresses. The rules:
//
// - With NPUSHMEM_CAP_TARGET_PROGRESS operations complete and are delivered while their target makes no call.
// - Without it they may, and they do when the target makes progress again.
// - An address with an altered byte is refused, with a reason, or accepted. In either case no PE crashes or hangs, and
//   operations among other PEs are not affected.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/contract/patterns.hpp"
#include "tests/contract/process_traffic.hpp"

namespace npushmem::contract {
namespace {

// All to all.

constexpr std::uint64_t exchanges = 3;

template <int count>
void serve_all_to_all(const Subject& subject) {
    PeProcesses processes(subject, count, 1 << 20);
    if (!processes.connect()) return;
    for (std::uint64_t round = 0; round < exchanges; ++round)
        if (!serve_exchange(processes, all_of(count), round)) return;
    processes.expect_all_to_end();
}

void all_to_all(PeProcess& process) {
    process.connect();
    for (std::uint64_t round = 0; round < exchanges; ++round) exchange(process, all_of(process.npes()), round);
}

// PE 1 makes no call while PE 0 posts an operation to it.

enum class Family { put, get, atomic, put_signal };

constexpr std::uint64_t idle_salt = 97;
constexpr std::uint64_t idle_bytes = 1 << 20;
constexpr std::uint64_t idle_data_offset = 1 << 20;  // at the target: written by puts
constexpr std::uint64_t idle_source_offset = 2 << 20;
constexpr std::uint64_t idle_word_offset = 64;  // at the target

// Reach is symmetrical: the target finds the same answer about PE 0 as PE 0 about the target.
bool can_transfer(const Pe& pe, int other, Family kind) {
    if (!pe.is_connected(other)) return false;
    const Reach& reach = pe.reach(other);
    switch (kind) {
        case Family::put: return reach.has(NPUSHMEM_CAP_PUT);
        case Family::get: return reach.has(NPUSHMEM_CAP_GET);
        case Family::atomic: return (reach.atomic_64 >> NPUSHMEM_ATOMIC_FETCH_ADD & 1U) != 0;
        case Family::put_signal: return reach.has(NPUSHMEM_CAP_PUT_SIGNAL);
    }
    return false;
}

class TransferToIdle {
public:
    TransferToIdle(Pe& pe, Family kind) : pe_(pe), kind_(kind), local_(pattern(idle_bytes, idle_salt)) {
        if (kind == Family::get) std::fill(local_.begin(), local_.end(), std::byte{0});
    }

    // Posts the operation, once. Code::again: not posted.
    Code post() {
        Transport& transport = pe_.transport();
        switch (kind_) {
            case Family::put: return transport.put(pe_.queue(), data(idle_data_offset), &token_);
            case Family::get: return transport.get(pe_.queue(), data(idle_source_offset), &token_);
            case Family::atomic: {
                npushmem_atomic op = pe_.atomic_op(1, idle_word_offset, NPUSHMEM_ATOMIC_FETCH_ADD, 8);
                op.operand = 5;
                op.result = &old_;
                return transport.atomic(pe_.queue(), op, &token_);
            }
            case Family::put_signal: {
                npushmem_put_signal op{};
                op.data = data(idle_data_offset);
                op.signal_remote = op.data.remote;
                op.signal_offset = idle_word_offset;
                op.signal = 12;
                op.operation = NPUSHMEM_SIGNAL_SET;
                return transport.put_signal(pe_.queue(), op, &token_);
            }
        }
        return Code::unsupported;
    }
    // Waits until the operation is complete and delivered.
    void complete() {
        EXPECT_EQ(pe_.wait(token_), Code::ok);
        EXPECT_EQ(pe_.quiet(), Code::ok);
        if (kind_ == Family::get) {
            EXPECT_TRUE(same(local_, pattern(idle_bytes, idle_salt)));
        }
        if (kind_ == Family::atomic) {
            EXPECT_EQ(old_, 7U);
        }
    }

    // The target's side.
    static void prepare(Pe& target) {
        const auto source = pattern(idle_bytes, idle_salt);
        std::copy(source.begin(), source.end(), target.memory().begin() + idle_source_offset);
        set_word(target.memory(), idle_word_offset, 7);
    }
    static void expect_delivered(Pe& target, Family kind) {
        const bool writes = kind == Family::put || kind == Family::put_signal;
        const bool updates = kind == Family::atomic || kind == Family::put_signal;
        if (updates) {
            EXPECT_EQ(word_at(target.memory(), idle_word_offset), 12U);
        }
        if (writes) {
            EXPECT_TRUE(same(target.memory().subspan(idle_data_offset, idle_bytes), pattern(idle_bytes, idle_salt)));
        }
    }

private:
    [[nodiscard]] npushmem_rma data(std::uint64_t offset) { return pe_.rma(1, offset, local_.data(), local_.size()); }

    Pe& pe_;
    Family kind_;
    std::vector<std::byte> local_;
    std::uint64_t old_ = 0;
    std::uint64_t token_ = 0;
};

void keep_the_target_idle(const Subject& subject) {
    PeProcesses processes(subject, 2);
    if (!processes.connect()) return;
    ASSERT_TRUE(processes.wait_for(1, "computing"));
    ASSERT_TRUE(release_from(processes, {0}, "prepared"));
    ASSERT_TRUE(processes.wait_for(0, "posted"));
    processes.go(1);
    ASSERT_TRUE(processes.wait_for(1, "calling again"));
    processes.go(0);
    ASSERT_TRUE(release_from(processes, {0, 1}, "delivered"));
    processes.expect_all_to_end();
}

void write_to_the_idle(Pe& pe, PeProcess& process, Family kind) {
    constexpr int calls = 200;
    TransferToIdle transfer(pe, kind);
    const bool possible = can_transfer(pe, 1, kind);
    const bool during = possible && pe.reach(1).has(NPUSHMEM_CAP_TARGET_PROGRESS);
    Code posted = Code::again;
    const auto post = [&] { return (posted = transfer.post()) != Code::again; };
    if (during) {
        EXPECT_EQ(pe.until(post), Code::ok) << "nothing can be posted to a PE that makes no call";
        EXPECT_EQ(posted, Code::ok);
        transfer.complete();
    }
    for (int i = 0; possible && !during && i < calls && !post(); ++i) (void)pe.transport().progress();
    process.reached("posted");
    if (possible && !during) {
        EXPECT_EQ(pe.until([&] { return posted != Code::again || post(); }), Code::ok);
        EXPECT_EQ(posted, Code::ok);
        transfer.complete();
    }
    process.reached("delivered");
}

template <Family kind>
void transfer_to_an_idle_pe(PeProcess& process) {
    process.connect();
    Pe& pe = process.pe();
    if (process.number() == 0) {
        process.reached("prepared");
        return write_to_the_idle(pe, process, kind);
    }
    TransferToIdle::prepare(pe);
    const bool written = can_transfer(pe, 0, kind);
    process.reached("computing", PeProcess::Waiting::idle);
    if (written && pe.reach(0).has(NPUSHMEM_CAP_TARGET_PROGRESS)) TransferToIdle::expect_delivered(pe, kind);
    process.report_stage("calling again");
    process.reached("delivered");
    if (written) TransferToIdle::expect_delivered(pe, kind);
}

// Altered addresses: an instance in the parent is PE 2.

constexpr int altering = 2;  // has no process
const Members addressed{0, 1};

// Connects to the altered address as if it were of another PE.
void connect_to_altered(Pe& pe, const PeConnectInfo& altered, int number) {
    Transport& transport = pe.transport();
    const npushmem_peer peer = altered.peer(number);
    const Reach reach = transport.reach(peer);
    EXPECT_FALSE(reach.why.empty()) << "no reason for PE " << number;
    if (!reach.reachable()) return;
    const Status connected = transport.connect(peer);
    EXPECT_TRUE(connected.ok() || !connected.message().empty()) << "an error without a message";
    if (!connected.ok()) return;
    const auto imported = transport.import_memory(number, altered.info.handle);
    EXPECT_TRUE(imported.ok() || !imported.status().message().empty()) << "an error without a message";
    if (imported.ok()) {
        EXPECT_EQ(transport.release_memory(imported.value()), Code::ok);
    }
}

void alter_the_address(const Subject& subject) {
    constexpr std::array alterations{0x01, 0x80, 0xff};
    constexpr int calls = 1000;
    constexpr int unaltered = altering + 1;
    PeProcesses processes(subject, altering, Fabric::pe_bytes, 1);
    {
        // A transport connects at most once to each PE.
        const auto pe =
            open_pe(subject, altering, unaltered + static_cast<int>(NPUSHMEM_ADDRESS_MAX * alterations.size()));
        ASSERT_NE(pe, nullptr);
        if (!processes.connect({pe.get()}) || !serve_exchange(processes, addressed, 0)) return;
        const PeConnectInfo original = processes.connect_info_of(1);
        const std::size_t bytes = original.info.address.size();
        if (bytes == 0) GTEST_SKIP() << "PEs have no address";
        int number = unaltered;
        for (std::size_t i = 0; i < bytes; ++i)
            for (const int alteration : alterations) {
                PeConnectInfo altered = original;
                altered.info.address[i] ^= static_cast<std::byte>(alteration);
                connect_to_altered(*pe, altered, number++);
                (void)pe->transport().progress();
            }
        for (int i = 0; i < calls; ++i) (void)pe->transport().progress();
        ASSERT_TRUE(serve_exchange(processes, addressed, 1));
    }
    ASSERT_TRUE(serve_exchange(processes, addressed, 2));
    processes.expect_all_to_end();
}

void be_addressed(PeProcess& process) {
    process.connect();
    exchange(process, addressed, 0);
    exchange(process, addressed, 1);
    exchange(process, addressed, 2);
}

}  // namespace

std::vector<ProcessCase> progress_cases() {
    return {
        {"two_processes_all_to_all", 0, serve_all_to_all<2>, all_to_all},
        {"four_processes_all_to_all", 0, serve_all_to_all<4>, all_to_all},
        {"eight_processes_all_to_all", 0, serve_all_to_all<8>, all_to_all},
        {"put_to_an_idle_pe", NPUSHMEM_CAP_PUT, keep_the_target_idle, transfer_to_an_idle_pe<Family::put>},
        {"get_from_an_idle_pe", NPUSHMEM_CAP_GET, keep_the_target_idle, transfer_to_an_idle_pe<Family::get>},
        {"atomic_on_an_idle_pe", NPUSHMEM_CAP_ATOMIC, keep_the_target_idle, transfer_to_an_idle_pe<Family::atomic>},
        {"put_signal_to_an_idle_pe", NPUSHMEM_CAP_PUT_SIGNAL, keep_the_target_idle,
         transfer_to_an_idle_pe<Family::put_signal>},
        {"altered_addresses", 0, alter_the_address, be_addressed},
    };
}

}  // namespace npushmem::contract
