// SPDX-License-Identifier: BSD-3-Clause
// The progress thread of a network transport: what it drives, reports and checks.
#include "transports/network/progress_driver.hpp"

#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "tests/unit/transports/network/network_world.hpp"

namespace npushmem::network {
namespace {

using fakes::data_words;
using fakes::flag_word;
using fakes::World;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(NetworkTransport, ServesPeersWhileItsProgramComputes) {
    NetworkSettings settings;
    World world(Delivery::in_order, 1, settings);
    world.start();
    std::atomic<bool> done{false};
    std::thread cable([&] {
        while (!done) (void)world.network.step();
    });
    std::uint64_t old = 0;
    auto op = world.atomic(1, NPUSHMEM_ATOMIC_SWAP, 0, 9);
    op.result = &old;
    std::uint64_t token = 0;
    EXPECT_EQ(world.at(0).atomic(world.queue[0], op, &token), Code::ok);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Code code = Code::again;
    while (code == Code::again && std::chrono::steady_clock::now() < deadline)
        code = world.at(0).test(world.queue[0], token);  // PE 1 calls nothing
    EXPECT_EQ(code, Code::ok);
    done = true;
    cable.join();
    EXPECT_EQ(world.word(1, 0), 9U);
}

// The thread leaves progress to a caller that makes it often, except when the alarm asks for the thread.
TEST(NetworkTransport, AnAlarmWakesTheThreadWhileTheProgramDrives) {
    const int alarm = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ASSERT_GE(alarm, 0);
    const auto test = std::this_thread::get_id();
    std::atomic<bool> served{false};
    {
        NetworkSettings settings;
        World world(Delivery::in_order, 1, settings);
        world.network.alarm = alarm;
        world.network.on_progress = [&](int pe) {
            std::uint64_t rings = 0;
            if (pe == 0 && std::this_thread::get_id() != test && ::read(alarm, &rings, sizeof rings) > 0) served = true;
        };
        world.start();
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        const auto drive = [&](auto&& until) {
            while (!until() && std::chrono::steady_clock::now() < deadline) (void)world.at(0).progress();
        };
        drive([calls = 0]() mutable { return ++calls == 100'000; });
        const std::uint64_t one = 1;
        ASSERT_EQ(::write(alarm, &one, sizeof one), static_cast<ssize_t>(sizeof one));
        drive([&] { return served.load(); });
    }
    EXPECT_TRUE(served);
    ::close(alarm);
}

TEST(NetworkTransportDeathTest, ProgressWithoutMemoryEndsTheProcess) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    World world(Delivery::in_order);
    world.start();
    const auto op = world.atomic(1, NPUSHMEM_ATOMIC_SET, 0, 9);
    ASSERT_EQ(world.at(0).atomic(world.queue[0], op, nullptr), Code::ok);
    world.wires[0]->has_memory = false;
    EXPECT_EXIT((void)world.at(0).progress(), ::testing::ExitedWithCode(1),
                "progress of a transport: .*cannot allocate private memory");
    EXPECT_EXIT((void)world.at(0).quiet(world.queue[0]), ::testing::ExitedWithCode(1), "progress of a transport");
    world.wires[0]->has_memory = true;
}

// Counts reports, those of the test's thread too, and finds a word in place at one of them. Outlives the world.
struct Arrivals {
    World* world = nullptr;
    std::thread::id test = std::this_thread::get_id();
    std::atomic<int> reports{0};
    std::atomic<int> reports_of_test{0};
    std::atomic<bool> seen{false};

    static void arrived(void* context) {
        auto& self = *static_cast<Arrivals*>(context);
        ++self.reports;
        if (std::this_thread::get_id() == self.test) ++self.reports_of_test;
        if (self.world->word(1, 0) == 9) self.seen = true;
    }
    // Lets PE 1 report.
    Code watch(World& watched) {
        world = &watched;
        return watched.at(1).report_arrivals(arrived, this);
    }
};

// Sets the word of PE 1.
void set_word_of_1(World& world) {
    const auto op = world.atomic(1, NPUSHMEM_ATOMIC_SET, 0, 9);
    EXPECT_EQ(world.finish([&] { return world.at(0).atomic(world.queue[0], op, nullptr); }), Code::ok);
}

TEST(NetworkTransport, ReportsArrivalsWhileItsProgramSleeps) {
    Arrivals arrivals;
    World world(Delivery::in_order, 1, NetworkSettings{});
    world.network.arrives_in_progress = true;
    world.start();
    ASSERT_EQ(arrivals.watch(world), Code::ok);
    set_word_of_1(world);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!arrivals.seen && std::chrono::steady_clock::now() < deadline) (void)world.network.step();
    EXPECT_TRUE(arrivals.seen);
}

// Another thread of the PE may sleep. The wire's own thread may be first each time, so this repeats.
TEST(NetworkTransport, ReportsArrivalsThatACallHasDriven) {
    Arrivals arrivals;
    World world(Delivery::in_order, 1, NetworkSettings{});
    world.network.arrives_in_progress = true;
    world.start();
    ASSERT_EQ(arrivals.watch(world), Code::ok);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (arrivals.reports_of_test == 0 && std::chrono::steady_clock::now() < deadline) {
        set_word_of_1(world);
        while (world.network.step()) (void)world.at(1).progress();
    }
    EXPECT_GT(arrivals.reports_of_test, 0);
}

TEST(NetworkTransport, ReportsNothingWhenNothingHasHappenedUnlessTheWireWritesSilently) {
    for (const bool silent : {false, true}) {
        Arrivals arrivals;
        NetworkSettings settings = World::quiet_settings();
        settings.thread = true;
        settings.tick = std::chrono::hours(1);
        World world(Delivery::in_order, 1, settings);
        world.network.arrives_in_progress = true;
        world.network.writes_silently = silent;
        world.start(false);
        ASSERT_EQ(arrivals.watch(world), Code::ok);
        for (int i = 0; i < 100; ++i) (void)world.at(1).progress();
        if (silent)
            EXPECT_GT(arrivals.reports, 0);
        else
            EXPECT_EQ(arrivals.reports, 0);
    }
}

TEST(NetworkTransport, ReportsNoArrivalsWithoutAThreadOrOverRdma) {
    for (const bool thread : {false, true}) {
        Arrivals arrivals;
        NetworkSettings settings;
        settings.thread = thread;
        World world(Delivery::in_order, 1, settings);
        world.network.arrives_in_progress = !thread;
        world.start();
        EXPECT_EQ(arrivals.watch(world), Code::unsupported);
        (void)world.at(1).progress();
        EXPECT_EQ(arrivals.reports, 0);
    }
}

// The program computes: only the thread can send the answer, which must be woken when there is room.
TEST(NetworkTransport, AnAnswerWithoutRoomWakesTheThreadAtCompletions) {
    std::uint64_t old = 0;
    NetworkSettings settings;
    settings.max_goodbye = {};  // nothing is delivered at the end
    World world(Delivery::in_order_on_completion, 1, settings);
    world.network.room = 1;
    world.network.hold = std::pair(1, 0U);  // the hello of that PE leaves no room for it
    world.start();
    auto op = world.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 0, 5);
    op.result = &old;
    ASSERT_EQ(world.finish([&] { return world.at(0).atomic(world.queue[0], op, nullptr); }), Code::ok);
    const auto awaits = [&] {
        const auto so_far = world.wires[1]->wake_events_so_far();
        const bool both = std::find(so_far.begin(), so_far.end(), WakeEvents::arrivals_and_completions) != so_far.end();
        return both ? Code::ok : Code::again;
    };
    EXPECT_EQ(world.finish(awaits), Code::ok);
    EXPECT_EQ(world.word(1, 0), 5U);
}

npushmem_put_signal put_to_pe_1(World& world, std::array<std::uint64_t, data_words>& data) {
    npushmem_put_signal op{};
    op.data = world.rma(1, 0, data.data(), data_words);
    op.signal_remote = op.data.remote;
    op.signal_offset = flag_word * 8;
    op.signal = 1;
    op.operation = NPUSHMEM_SIGNAL_ADD;
    return op;
}

// The program computes: only the thread can send the signal, which must be woken when the data is there.
TEST(NetworkTransport, ASignalBehindItsDataWakesTheThreadAtCompletions) {
    World world(Delivery::in_order_on_completion, 1, NetworkSettings{});
    world.start();
    std::array<std::uint64_t, data_words> data{};
    const npushmem_put_signal op = put_to_pe_1(world, data);
    ASSERT_EQ(world.at(0).put_signal(world.queue[0], op, nullptr), Code::ok);
    EXPECT_THAT(world.wires[0]->wake_events_so_far(), Contains(WakeEvents::arrivals_and_completions));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (world.word(1, flag_word) != 1 && std::chrono::steady_clock::now() < deadline) (void)world.network.step();
    EXPECT_EQ(world.word(1, flag_word), 1U);
}

// A foreign process that sends bytes to the wire's listener without end must not hold up the program.
TEST(NetworkTransport, PostsASignalAlthoughTheWireAlwaysReportsWork) {
    World world(Delivery::in_order_on_completion, 1, NetworkSettings{});
    world.start();
    world.wires[0]->always_busy = true;
    std::array<std::uint64_t, data_words> data{};
    const npushmem_put_signal op = put_to_pe_1(world, data);
    EXPECT_EQ(world.at(0).put_signal(world.queue[0], op, nullptr), Code::ok);
    EXPECT_EQ(world.finish([&] { return world.at(0).quiet(world.queue[0]); }), Code::ok);
    EXPECT_EQ(world.word(1, flag_word), 1U);
}

// Nothing ever arrived, as behind a firewall.
TEST(NetworkTransport, APeerThatIsSilentTooLongIsLost) {
    NetworkSettings settings;
    settings.tick = std::chrono::milliseconds(2);
    settings.peer_timeout = std::chrono::milliseconds(20);
    World world(Delivery::in_order, 1, settings);
    world.network.cut = true;
    world.start();
    std::uint64_t value = 5;
    EXPECT_EQ(world.at(0).put(world.queue[0], world.rma(1, 0, &value, 1), nullptr), Code::ok);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Code code = Code::again;
    while (code == Code::again && std::chrono::steady_clock::now() < deadline) code = world.at(0).quiet(world.queue[0]);
    EXPECT_EQ(code, Code::timeout);
    npushmem_event event{};
    ASSERT_EQ(world.at(0).poll_event(event), Code::ok);
    EXPECT_THAT(text_of(event.message), AllOf(HasSubstr("PE "), HasSubstr("it has been silent for"),
                                              HasSubstr("has never sent anything (does a firewall")));
}

// Without a limit for silence, and although the wire only asks to send again.
TEST(NetworkTransport, ASilentPeerWhoseHostRefusesConnectionsIsLost) {
    NetworkSettings settings;
    settings.tick = std::chrono::milliseconds(2);
    settings.peer_timeout = std::chrono::milliseconds(0);
    World world(Delivery::in_order, 1, settings);
    world.network.room = 0;
    world.network.refuses_connections = true;
    world.start();
    npushmem_event event{};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    Code code = Code::again;
    while (code == Code::again && std::chrono::steady_clock::now() < deadline) code = world.at(0).poll_event(event);
    EXPECT_EQ(code, Code::ok);
    EXPECT_EQ(event.code, NPUSHMEM_E_PEER_DEAD);
    EXPECT_THAT(text_of(event.message), HasSubstr("its host refuses connections to it"));
}

}  // namespace
}  // namespace npushmem::network
