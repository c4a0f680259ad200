// SPDX-License-Identifier: BSD-3-Clause
// A PE is killed. The rules for the PEs that survive:
//
// - No call crashes or blocks for ever. Everything can be released and closed.
// - With NPUSHMEM_CAP_REPORTS_DEATH operations to the dead PE and `quiet` return anything but NPUSHMEM_AGAIN after a
//   while. Finally operations fail with NPUSHMEM_E_PEER_DEAD, NPUSHMEM_E_UNREACHABLE or NPUSHMEM_E_TIMEOUT. poll_event
//   delivers exactly one event with one of these codes that names the dead PE, also if nothing was posted to it.
// - Without it these operations may succeed, fail, or return NPUSHMEM_AGAIN for ever, as may `quiet` of their queue.
// - Other queues are not affected: operations among the survivors complete.
// - destroy_queue returns. Afterwards the transport does not touch the memory that the queue's operations used.
// - A PE that closes its transport and exits is not dead: PEs that have nothing outstanding to it see no event and no
//   error, and later deaths of others are reported.
// - A PE that is stopped for a shorter time than any timeout is not dead. Nothing is lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>

#include "tests/contract/patterns.hpp"
#include "tests/contract/process_traffic.hpp"
#include "tests/contract/victim_operations.hpp"

namespace npushmem::contract {
namespace {

// One PE is killed while the others work on it.
void kill_the_victim(const Subject& subject) {
    PeProcesses processes(subject, victim + 1);
    if (!processes.connect()) return;
    ASSERT_TRUE(release_from(processes, all_of(victim + 1), "prepared"));
    for (const int pe : survivors) ASSERT_TRUE(processes.wait_for(pe, "working"));
    processes.signal(victim, SIGKILL);
    ASSERT_TRUE(release_from(processes, survivors, "after the death"));
    ASSERT_TRUE(serve_exchange(processes, survivors, 0));
    ASSERT_TRUE(serve_exchange(processes, survivors, 1));
    ASSERT_TRUE(release_from(processes, survivors, "checked"));
    processes.expect_all_to_end();
}

void survive(PeProcess& process, Work work) {
    Pe& pe = process.pe();
    VictimOperations operations(pe, work);
    LossEvents events(pe);
    operations.call_often();
    process.report_stage("working");
    operations.call_often();  // the victim is killed meanwhile, or later
    process.reached("after the death");
    const bool reported = reports_death(pe, victim);
    if (reported && work == Work::nothing) events.await(victim);
    operations.call_often();
    if (reported) {
        operations.expect_that_calls_fail();
        events.await(victim);
    }
    exchange(process, survivors, 0);
    operations.end();
    exchange(process, survivors, 1);
    operations.expect_untouched_memory();
    if (reported) {
        EXPECT_EQ(events.count(victim), 1) << "events about the same dead PE";
    }
    for (const int other : survivors) EXPECT_EQ(events.count(other), 0) << "living PE " << other << " was reported";
    process.reached("checked");  // the end of a survivor may be an event for the other
}

template <Work what>
void work_with_the_victim(PeProcess& process) {
    process.connect();
    if (process.number() == victim) VictimOperations::give_handle(process.pe());
    process.reached("prepared");
    if (process.number() != victim) return survive(process, what);
    process.reached("end", what == Work::nothing ? PeProcess::Waiting::idle : PeProcess::Waiting::with_progress);
    ADD_FAILURE() << "the victim was not killed";
}

// Several PEs die: one event for each.

constexpr int dying = 2;

void kill_two(const Subject& subject) {
    PeProcesses processes(subject, 2 + dying);
    if (!processes.connect() || !serve_exchange(processes, all_of(2 + dying), 0)) return;
    for (int pe = 2; pe < 2 + dying; ++pe) processes.signal(pe, SIGKILL);
    ASSERT_TRUE(release_from(processes, survivors, "after the deaths"));
    ASSERT_TRUE(serve_exchange(processes, survivors, 1));
    processes.expect_all_to_end();
}

void count_two_deaths(PeProcess& process) {
    process.connect();
    exchange(process, all_of(2 + dying), 0);
    if (process.number() >= 2) return process.reached("end");
    process.reached("after the deaths");
    Pe& pe = process.pe();
    LossEvents events(pe);
    for (int other = 2; other < 2 + dying; ++other)
        if (reports_death(pe, other)) events.await(other);
    exchange(process, survivors, 1);
    for (int other = 2; other < 2 + dying; ++other)
        if (reports_death(pe, other)) {
            EXPECT_EQ(events.count(other), 1) << "events about PE " << other;
        }
}

// One PE ends normally, then another is killed. The transport finds the death not earlier than the end, so the events
// about the end are there when the death has been reported.

constexpr int ending = 2;
constexpr int killed_later = 3;
const Members without_ending{0, 1, killed_later};

// Does not reap the process.
bool wait_for_end(pid_t process) {
    Deadline deadline;
    for (;;) {
        siginfo_t found{};
        if (::waitid(P_PID, static_cast<id_t>(process), &found, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
        if (found.si_pid == process) return true;
        if (deadline.expired()) return false;
        std::this_thread::yield();
    }
}

void end_one_then_kill_one(const Subject& subject) {
    PeProcesses processes(subject, 4);
    if (!processes.connect() || !serve_exchange(processes, all_of(4), 0)) return;
    ASSERT_TRUE(processes.wait_for(ending, "before its end"));
    processes.go(ending);
    ASSERT_TRUE(wait_for_end(processes.connect_info_of(ending).process)) << "PE " << ending << " does not end";
    ASSERT_TRUE(serve_exchange(processes, without_ending, 1));
    ASSERT_TRUE(processes.wait_for(killed_later, "end"));
    processes.signal(killed_later, SIGKILL);
    ASSERT_TRUE(release_from(processes, survivors, "after the death"));
    ASSERT_TRUE(serve_exchange(processes, survivors, 2));
    ASSERT_TRUE(release_from(processes, survivors, "checked"));
    processes.expect_all_to_end();
}

void see_one_end(PeProcess& process) {
    process.connect();
    exchange(process, all_of(4), 0);
    if (process.number() == ending) return process.reached("before its end");
    exchange(process, without_ending, 1);
    if (process.number() == killed_later) return process.reached("end");
    process.reached("after the death");
    LossEvents events(process.pe());
    if (reports_death(process.pe(), killed_later)) events.await(killed_later);
    EXPECT_EQ(process.pe().quiet(), Code::ok) << "nothing is outstanding";
    exchange(process, survivors, 2);
    EXPECT_EQ(events.count(ending), 0) << "events about the PE that ended normally";
    EXPECT_LE(events.count(killed_later), 1) << "events about the PE that was killed";
    for (const int other : survivors) EXPECT_EQ(events.count(other), 0) << "living PE " << other << " was reported";
    process.reached("checked");  // the end of a survivor may be an event for the other
}

// A PE is stopped, and continues.

constexpr std::uint64_t words_offset = 3 << 20;
constexpr int words = 100;

void stop_and_continue(const Subject& subject) {
    PeProcesses processes(subject, victim + 1);
    if (!processes.connect() || !serve_exchange(processes, all_of(victim + 1), 0)) return;
    ASSERT_TRUE(processes.wait_for(victim, "stopped"));
    for (const int pe : survivors) ASSERT_TRUE(processes.wait_for(pe, "before the stop"));
    processes.signal(victim, SIGSTOP);
    for (const int pe : survivors) processes.go(pe);
    for (const int pe : survivors) ASSERT_TRUE(processes.wait_for(pe, "posted"));
    processes.signal(victim, SIGCONT);
    for (const int pe : survivors) processes.go(pe);
    ASSERT_TRUE(release_from(processes, survivors, "delivered"));
    processes.go(victim);
    ASSERT_TRUE(serve_exchange(processes, all_of(victim + 1), 1));
    ASSERT_TRUE(release_from(processes, all_of(victim + 1), "checked"));
    processes.expect_all_to_end();
}

// Words that a PE has received from one that wrote to it while it was stopped.
std::uint64_t place_of(int from, int word) {
    return words_offset + static_cast<std::uint64_t>(from * words + word) * sizeof(std::uint64_t);
}

void write_to_a_stopped_pe(PeProcess& process) {
    Pe& pe = process.pe();
    const bool writes = pe.is_connected(victim) && pe.reach(victim).has(NPUSHMEM_CAP_PUT);
    std::vector<std::uint64_t> values(words);
    for (int i = 0; i < words; ++i) values[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(i) + 1;
    int posted = 0;
    process.reached("before the stop");
    for (int calls = 0; writes && calls < 4 * words && posted < words; ++calls) {
        const auto op = pe.rma(victim, place_of(pe.number(), posted), &values[static_cast<std::size_t>(posted)],
                               sizeof(std::uint64_t));
        const Code code = pe.transport().put(pe.queue(), op, nullptr);
        EXPECT_TRUE(code == Code::ok || code == Code::again) << "a put to a stopped PE: " << static_cast<int>(code);
        if (code == Code::ok) ++posted;
        (void)pe.transport().progress();
    }
    process.reached("posted");
    for (; writes && posted < words; ++posted)
        EXPECT_EQ(pe.put(victim, place_of(pe.number(), posted), &values[static_cast<std::size_t>(posted)],
                         sizeof(std::uint64_t)),
                  Code::ok);
    EXPECT_EQ(pe.quiet(), Code::ok);
    process.reached("delivered");
}

void see_one_stop(PeProcess& process) {
    process.connect();
    Pe& pe = process.pe();
    exchange(process, all_of(victim + 1), 0);
    LossEvents events(pe);
    if (process.number() != victim) {
        write_to_a_stopped_pe(process);
    } else {
        process.reached("stopped");
        for (const int from : survivors) {
            if (!pe.is_connected(from) || !pe.reach(from).has(NPUSHMEM_CAP_PUT)) continue;
            for (int i = 0; i < words; ++i)
                EXPECT_EQ(word_at(pe.memory(), place_of(from, i)), static_cast<std::uint64_t>(i) + 1)
                    << "word " << i << " of PE " << from;
        }
    }
    exchange(process, all_of(victim + 1), 1);
    for (int other = 0; other <= victim; ++other) EXPECT_EQ(events.count(other), 0) << "PE " << other;
    process.reached("checked");  // the end of a PE may be an event for the others
}

// PE 1 is killed while another, an instance in the parent, connects to it.

constexpr int connecting = 2;  // has no process

enum class KillBefore { reach, connect, import, use };

class DyingPeer {
public:
    DyingPeer(Pe& pe, PeProcesses& processes, KillBefore when) : pe_(pe), processes_(processes), when_(when) {}

    [[nodiscard]] bool is_killed() const { return killed_; }
    void connect(const PeConnectInfo& other);
    // Puts to the imported memory, and releases it.
    void use();

private:
    void before(KillBefore step) {
        if (step != when_) return;
        processes_.signal(1, SIGKILL);
        killed_ = true;
    }
    // Calls that need a dead PE may fail, with a reason.
    [[nodiscard]] bool is_ok(const Status& status) const {
        EXPECT_TRUE(status.ok() || killed_) << status.message();
        EXPECT_TRUE(status.ok() || !status.message().empty()) << "an error without a message";
        return status.ok();
    }

    Pe& pe_;
    PeProcesses& processes_;
    KillBefore when_;
    bool killed_ = false;
    Reach reach_;
    std::uint64_t remote_ = 0;
};

void DyingPeer::connect(const PeConnectInfo& other) {
    Transport& transport = pe_.transport();
    const npushmem_peer peer = other.peer(1);
    before(KillBefore::reach);
    reach_ = transport.reach(peer);
    EXPECT_FALSE(reach_.why.empty());
    if (!reach_.reachable()) return;
    before(KillBefore::connect);
    if (!is_ok(transport.connect(peer))) return;
    before(KillBefore::import);
    const auto imported = transport.import_memory(1, other.info.handle);
    if (is_ok(imported.status())) remote_ = imported.value();
    before(KillBefore::use);
}

void DyingPeer::use() {
    constexpr int calls = 200;
    Transport& transport = pe_.transport();
    if (remote_ == 0) return;
    const npushmem_rma op{1, 0, remote_, 0, pe_.memory().data(), sizeof(std::uint64_t)};
    const auto put = [&] { return transport.put(pe_.queue(), op, nullptr); };
    for (int i = 0; i < calls; ++i) {
        (void)put();
        (void)transport.quiet(pe_.queue());
    }
    if (reach_.has(NPUSHMEM_CAP_REPORTS_DEATH | NPUSHMEM_CAP_PUT)) {
        EXPECT_EQ(pe_.until([&] { return is_loss(put()); }), Code::ok) << "operations to a dead PE do not fail";
        LossEvents(pe_).await(1);
    }
    EXPECT_EQ(transport.release_memory(remote_), Code::ok);
}

template <KillBefore when>
void kill_while_connecting(const Subject& subject) {
    PeProcesses processes(subject, connecting, Fabric::pe_bytes, 1);
    {
        const auto pe = open_pe(subject, connecting, connecting + 1);
        ASSERT_NE(pe, nullptr);
        if (!processes.connect({pe.get()})) return;
        DyingPeer peer(*pe, processes, when);
        peer.connect(processes.connect_info_of(1));
        peer.use();
        if (!peer.is_killed()) processes.signal(1, SIGKILL);  // unreachable
    }
    ASSERT_TRUE(release_from(processes, {0}, "end"));
    processes.expect_all_to_end();
}

void be_connected_to(PeProcess& process) {
    process.connect();
    process.reached("end");
}

}  // namespace

std::vector<ProcessCase> death_cases() {
    return {
        {"killed_during_puts", NPUSHMEM_CAP_PUT, kill_the_victim, work_with_the_victim<Work::puts>},
        {"killed_during_gets", NPUSHMEM_CAP_GET, kill_the_victim, work_with_the_victim<Work::gets>},
        {"killed_during_atomics", NPUSHMEM_CAP_ATOMIC, kill_the_victim, work_with_the_victim<Work::atomics>},
        {"killed_during_put_signals", NPUSHMEM_CAP_PUT_SIGNAL, kill_the_victim,
         work_with_the_victim<Work::put_signals>},
        {"killed_during_strided_puts", NPUSHMEM_CAP_PUT_STRIDED, kill_the_victim,
         work_with_the_victim<Work::strided_puts>},
        {"killed_during_fences_and_quiets", NPUSHMEM_CAP_PUT, kill_the_victim,
         work_with_the_victim<Work::fences_and_quiets>},
        {"killed_during_registrations", 0, kill_the_victim, work_with_the_victim<Work::registrations>},
        {"killed_while_idle", 0, kill_the_victim, work_with_the_victim<Work::nothing>},
        {"killed_before_reach", 0, kill_while_connecting<KillBefore::reach>, be_connected_to},
        {"killed_before_connect", 0, kill_while_connecting<KillBefore::connect>, be_connected_to},
        {"killed_before_import", 0, kill_while_connecting<KillBefore::import>, be_connected_to},
        {"killed_before_the_first_operation", 0, kill_while_connecting<KillBefore::use>, be_connected_to},
        {"each_death_is_reported_once", NPUSHMEM_CAP_REPORTS_DEATH, kill_two, count_two_deaths},
        {"a_normal_end_disturbs_nobody", 0, end_one_then_kill_one, see_one_end},
        {"a_stopped_pe_is_not_dead", 0, stop_and_continue, see_one_stop},
    };
}

}  // namespace npushmem::contract
