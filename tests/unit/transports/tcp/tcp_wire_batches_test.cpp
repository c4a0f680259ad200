// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "tests/unit/transports/tcp/tcp_wires.hpp"

namespace npushmem::tcp {
namespace {

// Bursts of short writes. The frames may follow each other slowly.
class TcpBursts : public TcpWires {
protected:
    TcpBursts() : TcpWires(std::chrono::seconds(30)) {}

    void SetUp() override {
        connect();
        remote = place_in(memory);
    }
    [[nodiscard]] Code write_next() {
        const std::uint64_t value = ++written;
        network::RemoteAddress to = remote;
        to.offset = (value - 1) % words() * sizeof value;
        return pair.wires[0]->write(to, &value, sizeof value, contexts.emplace_back());
    }
    [[nodiscard]] std::size_t words() const { return memory.size() / sizeof(std::uint64_t); }
    // The last `words()` writes, if all have arrived.
    [[nodiscard]] bool has_arrived() const {
        for (std::uint64_t value = written; value > 0 && value + words() > written; --value) {
            std::uint64_t seen = 0;
            std::memcpy(&seen, &memory[(value - 1) % words() * sizeof seen], sizeof seen);
            if (seen != value) return false;
        }
        return true;
    }
    // Writes until some have to wait in a batch.
    [[nodiscard]] bool begin_batch() {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!pair.wires[0]->has_unsent_messages() && std::chrono::steady_clock::now() < deadline) {
            if (write_next() != Code::ok) return false;
            (void)pair.wires[1]->progress(pair.notes[1]);  // so that the socket has room
        }
        return pair.wires[0]->has_unsent_messages();
    }
    static bool is_readable(int descriptor) {
        pollfd wanted{descriptor, POLLIN, 0};
        return ::poll(&wanted, 1, 0) == 1;
    }
    // Only the peer makes progress, and PE 0 when this descriptor wakes its thread.
    [[nodiscard]] bool arrives_at_the_peer(int descriptor) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!has_arrived() && std::chrono::steady_clock::now() < deadline) {
            if (is_readable(descriptor)) (void)pair.wires[0]->progress(pair.notes[0]);
            (void)pair.wires[1]->progress(pair.notes[1]);
        }
        return has_arrived();
    }

    std::vector<std::byte> memory = std::vector<std::byte>(4096);
    network::RemoteAddress remote{};
    std::uint64_t written = 0;
    std::deque<network::WireContext> contexts;
};

TEST_F(TcpBursts, TheFirstFramesAreSentAtOnce) {
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(write_next(), Code::ok);
        ASSERT_FALSE(pair.wires[0]->has_unsent_messages());
    }
    EXPECT_TRUE(arrives_at_the_peer(-1));
}

TEST_F(TcpBursts, ProgressSendsABatch) {
    ASSERT_TRUE(begin_batch());
    (void)pair.wires[0]->progress(pair.notes[0]);
    EXPECT_FALSE(pair.wires[0]->has_unsent_messages());
    EXPECT_TRUE(arrives_at_the_peer(-1));
    EXPECT_TRUE(completes(written));
}

TEST_F(TcpBursts, ABatchWakesTheThreadOfAPeThatCallsNothing) {
    ASSERT_TRUE(begin_batch());
    EXPECT_TRUE(arrives_at_the_peer(pair.wires[0]->descriptor()));
}

TEST_F(TcpBursts, ABatchWakesTheThreadOfAPeThatHasJustWaited) {
    ASSERT_TRUE(begin_batch());
    EXPECT_TRUE(arrives_at_the_peer(pair.wires[0]->alarm()));
}

// Each keeps memory until the caller makes progress.
TEST_F(TcpBursts, OperationsThatHaveEndedAreLimited) {
    Code code = Code::ok;
    constexpr std::uint64_t many = 100'000;
    for (std::uint64_t i = 0; i < many && code == Code::ok; ++i) {
        code = write_next();
        (void)pair.wires[1]->progress(pair.notes[1]);
    }
    ASSERT_EQ(code, Code::again);
    --written;
    EXPECT_TRUE(arrives_at_the_peer(pair.wires[0]->alarm()));
    EXPECT_EQ(pair.retry_until_posted([&] { return write_next(); }), Code::ok);
}

TEST_F(TcpBursts, ALongFrameFollowsABatch) {
    ASSERT_TRUE(begin_batch());
    std::vector<std::byte> target(much);
    const std::vector<std::byte> data(much, std::byte{7});
    ASSERT_EQ(write(place_in(target), data, contexts.emplace_back()), Code::ok);
    ASSERT_TRUE(completes(written + 1));
    ASSERT_TRUE(pair.until([&] { return target.back() == std::byte{7}; }));
    EXPECT_TRUE(has_arrived());
}

TEST_F(TcpBursts, AReadReturnsWhatTheBatchHasWritten) {
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(begin_batch());
        std::uint64_t seen = 0;
        network::RemoteAddress from = remote;
        from.offset = (written - 1) % words() * sizeof seen;
        ASSERT_EQ(read(from, std::as_writable_bytes(std::span(&seen, 1)), contexts.emplace_back()), Code::ok);
        ASSERT_TRUE(completes(contexts.size()));
        EXPECT_EQ(seen, written);
    }
}

TEST_F(TcpBursts, AWireThatClosesSendsItsBatch) {
    ASSERT_TRUE(begin_batch());
    pair.wires[0].reset();
    EXPECT_TRUE(arrives_at_the_peer(-1));
}

TEST_F(TcpBursts, TheEndOfAPeerIsReportedBehindABatch) {
    ASSERT_TRUE(begin_batch());
    pair.wires[1].reset();
    EXPECT_TRUE(alone_until([&] { return !pair.notes[0].closed_peers.empty() || !pair.notes[0].losses.empty(); }));
}

// Nothing would send a batch while the program computes.
TEST_F(TcpBursts, AWireWithoutAThreadHasNoBatches) {
    fakes::WirePair without(
        [pe = 0]() mutable { return TcpWire::open(loopback(), pe++, 2, 1, std::chrono::microseconds{0}); });
    ASSERT_EQ(without.retry_until_posted([&] { return without.wires[0]->send({1, 0}, Bytes(8), {}); }), Code::ok);
    ASSERT_TRUE(without.until([&] { return !without.notes[1].messages.empty(); }));
    for (std::uint64_t value = 1; value <= 1000; ++value) {
        ASSERT_EQ(without.wires[0]->write(without.place(0, 0), &value, sizeof value, contexts.emplace_back()),
                  Code::ok);
        ASSERT_FALSE(without.wires[0]->has_unsent_messages());
    }
}

}  // namespace
}  // namespace npushmem::tcp
