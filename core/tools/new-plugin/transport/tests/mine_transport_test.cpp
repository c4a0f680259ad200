// SPDX-License-Identifier: BSD-3-Clause
// What the contract cannot know: variables, the form of addresses and handles, limits, and the messages of this
// transport. Two PEs are two instances in this process.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "mine_transport.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace mine_plugin {
namespace {

using npushmem::Host;
using npushmem::Transport;
using npushmem::fakes::FakeHost;

npushmem_transport_params params_of(int pe) {
    npushmem_transport_params out{};
    out.struct_size = sizeof out;
    out.pe = pe;
    out.npes = 2;
    out.process_id = ::getpid();
    return out;
}

// Repeats a call while it returns again. Fails instead of hanging.
Code repeat(const std::function<Code()>& call) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Code code = call();
    while (code == Code::again && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
        code = call();
    }
    return code;
}

struct Pe {
    Pe(FakeHost& host, int number) {
        auto opened = MineTransport::open(Host(&host.table(), "mine"), params_of(number));
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        transport = std::move(opened).value();
        npushmem_memory given{};
        given.struct_size = sizeof given;
        given.fd = -1;
        given.base = memory.data();
        given.bytes = memory.size() * sizeof memory[0];
        auto registered = transport->register_memory(given);
        handle = registered.value().handle;
        region = registered.value().region;
        queue = transport->create_queue().value();
        address = transport->address().value();
    }

    [[nodiscard]] npushmem_peer as_peer(int number) const {
        npushmem_peer out{};
        out.struct_size = sizeof out;
        out.pe = number;
        out.address = address.data();
        out.address_bytes = static_cast<std::uint32_t>(address.size());
        return out;
    }

    std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(1 << 16);
    std::unique_ptr<Transport> transport;
    Bytes handle;
    Bytes address;
    std::uint64_t region = 0;
    std::uint64_t queue = 0;
};

// PE 0 is connected to PE 1 and has imported its memory.
class MineTransportTest : public ::testing::Test {
protected:
    void open() {
        target = std::make_unique<Pe>(host, 1);
        origin = std::make_unique<Pe>(host, 0);
        const Status connected = origin->transport->connect(target->as_peer(1));
        ASSERT_TRUE(connected.ok()) << connected.message();
        auto imported = origin->transport->import_memory(1, target->handle);
        ASSERT_TRUE(imported.ok()) << imported.status().message();
        remote = imported.value();
    }
    [[nodiscard]] Code put(std::uint64_t offset, const void* from, std::uint64_t bytes) const {
        const npushmem_rma op{1, 0, remote, offset, const_cast<void*>(from), bytes};
        return repeat([&] { return origin->transport->put(origin->queue, op, nullptr); });
    }
    [[nodiscard]] Code quiet() const {
        return repeat([&] { return origin->transport->quiet(origin->queue); });
    }

    FakeHost host;
    std::unique_ptr<Pe> target;
    std::unique_ptr<Pe> origin;
    std::uint64_t remote = 0;
};

TEST_F(MineTransportTest, LargePutsArriveInPiecesOfAnySize) {
    for (const char* piece : {"64", "4096", "131072"}) {
        host.set("MINE_PIECE", piece);
        open();
        std::vector<std::uint64_t> source(target->memory.size());
        std::iota(source.begin(), source.end(), 1U);
        ASSERT_EQ(put(0, source.data(), source.size() * sizeof source[0]), Code::ok) << piece;
        ASSERT_EQ(quiet(), Code::ok) << piece;
        EXPECT_EQ(target->memory, source) << piece;
        origin.reset();
    }
}

TEST_F(MineTransportTest, OperationsBeyondTheDepthGetAgainUntilOneIsComplete) {
    host.set("MINE_DEPTH", "1");
    open();
    for (std::uint64_t i = 0; i < 100; ++i) {
        const std::uint64_t value = i + 1;
        ASSERT_EQ(put(i * sizeof value, &value, sizeof value), Code::ok);
        ASSERT_EQ(quiet(), Code::ok);
        EXPECT_EQ(target->memory[i], value);
    }
}

TEST_F(MineTransportTest, InvalidVariablesAreRefusedByName) {
    for (const char* value : {"", "0", "70000", "12x", "-1"}) {
        host.set("MINE_DEPTH", value);
        const auto opened = MineTransport::open(Host(&host.table(), "mine"), params_of(0));
        ASSERT_FALSE(opened.ok()) << value;
        EXPECT_EQ(opened.status().code(), Code::config);
        EXPECT_NE(opened.status().message().find("NPUSHMEM_MINE_DEPTH"), std::string::npos)
            << opened.status().message();
    }
}

TEST_F(MineTransportTest, OtherHostsAndPeersWithoutAnAddressAreNotReached) {
    open();
    npushmem_peer peer = target->as_peer(1);
    EXPECT_TRUE(origin->transport->reach(peer).has(MineTransport::capabilities));
    peer.host.machine ^= 1;
    EXPECT_EQ(origin->transport->reach(peer).why, "different host");
    peer = target->as_peer(1);
    peer.address = nullptr;
    EXPECT_FALSE(origin->transport->reach(peer).reachable());
}

TEST_F(MineTransportTest, AHandleIsRefusedWhateverByteOfItIsDamaged) {
    open();
    for (std::size_t i = 0; i < target->handle.size(); ++i) {
        Bytes damaged = target->handle;
        damaged[i] ^= std::byte{1};
        EXPECT_FALSE(origin->transport->import_memory(1, damaged).ok()) << "byte " << i;
    }
    EXPECT_EQ(origin->transport->import_memory(0, target->handle).status().code(), Code::argument) << "of another PE";
}

TEST_F(MineTransportTest, AConnectionWithoutTheSecretIsClosedWithAnEvent) {
    open();
    Address address;
    std::memcpy(&address, target->address.data(), sizeof address);
    address.secret ^= 1;
    target->address = address.encode();
    Pe impostor(host, 0);
    ASSERT_TRUE(impostor.transport->connect(target->as_peer(1)).ok());
    npushmem_event event{};
    ASSERT_EQ(repeat([&] { return target->transport->poll_event(event); }), Code::ok);
    EXPECT_EQ(static_cast<Code>(event.code), Code::protocol);
    EXPECT_EQ(event.pe, -1);
}

// Limits the process to one more descriptor.
class OneMoreDescriptor {
public:
    OneMoreDescriptor() {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        const int next = ::dup(STDERR_FILENO);
        EXPECT_GE(next, 0);
        ::close(next);
        rlimit one_more = before_;
        one_more.rlim_cur = static_cast<rlim_t>(next) + 1;
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
    }
    ~OneMoreDescriptor() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
    OneMoreDescriptor(const OneMoreDescriptor&) = delete;
    OneMoreDescriptor& operator=(const OneMoreDescriptor&) = delete;

private:
    rlimit before_{};
};

// The listener stays ready: a thread that waits for it would run without a pause.
TEST(SocketWire, AListenerWithoutADescriptorIsNotReportedUntilResumed) {
    const auto target = SocketWire::open(64);
    const auto origin = SocketWire::open(64);
    ASSERT_TRUE(target.ok() && origin.ok());
    SocketWire::Keys keys;
    auto limit = std::make_unique<OneMoreDescriptor>();
    const auto connected = origin.value().connect(target.value().address(), 1);
    ASSERT_TRUE(connected.ok()) << connected.status().message();
    EXPECT_EQ(target.value().wait(keys, 0), 1U);
    const Status refused = target.value().accept(2).status();
    EXPECT_EQ(refused.code(), Code::system);
    EXPECT_NE(refused.message().find("cannot accept a connection: "), std::string::npos) << refused.message();
    EXPECT_EQ(target.value().wait(keys, 0), 0U);
    limit.reset();
    target.value().resume_accept();
    ASSERT_EQ(target.value().wait(keys, 0), 1U);
    EXPECT_EQ(keys[0], SocketWire::accept_key);
    const auto accepted = target.value().accept(2);
    ASSERT_TRUE(accepted.ok()) << accepted.status().message();
    EXPECT_NE(accepted.value(), nullptr);
}

TEST_F(MineTransportTest, APeerThatFindsNoDescriptorIsAnEventAndServedWhenAnotherOneHasEnded) {
    open();
    const std::uint64_t value = 7;
    ASSERT_EQ(put(0, &value, sizeof value), Code::ok);
    ASSERT_EQ(quiet(), Code::ok);  // the target has accepted the connection
    auto second = std::make_unique<Pe>(host, 0);
    remote = second->transport->import_memory(1, target->handle).value();
    {
        const OneMoreDescriptor limit;
        ASSERT_TRUE(second->transport->connect(target->as_peer(1)).ok());
        npushmem_event event{};
        ASSERT_EQ(repeat([&] { return target->transport->poll_event(event); }), Code::ok);
        EXPECT_EQ(static_cast<Code>(event.code), Code::system) << event.message;
    }
    origin = std::move(second);  // ends the first connection
    ASSERT_EQ(put(8, &value, sizeof value), Code::ok);
    ASSERT_EQ(quiet(), Code::ok);
    EXPECT_EQ(target->memory[1], value);
}

TEST_F(MineTransportTest, OperationsToAForgottenPeerFailWithoutAnEvent) {
    open();
    const std::uint64_t value = 1;
    ASSERT_EQ(put(0, &value, sizeof value), Code::ok);
    ASSERT_EQ(quiet(), Code::ok);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(origin->transport->forget(1), Code::ok) << "repeatedly";
    EXPECT_EQ(put(0, &value, sizeof value), Code::peer_dead);
    EXPECT_EQ(quiet(), Code::ok);
    npushmem_event event{};
    EXPECT_EQ(origin->transport->poll_event(event), Code::again) << event.message;
    EXPECT_EQ(origin->transport->release_memory(remote), Code::ok);
}

TEST_F(MineTransportTest, APeerCanBeForgottenBeforeItIsConnected) {
    target = std::make_unique<Pe>(host, 1);
    origin = std::make_unique<Pe>(host, 0);
    EXPECT_EQ(origin->transport->forget(1), Code::ok);
    ASSERT_TRUE(origin->transport->connect(target->as_peer(1)).ok());
    remote = origin->transport->import_memory(1, target->handle).value();
    const std::uint64_t value = 1;
    EXPECT_EQ(put(0, &value, sizeof value), Code::peer_dead);
    for (const int pe : {-1, 2}) EXPECT_EQ(origin->transport->forget(pe), Code::argument) << pe;
}

TEST_F(MineTransportTest, APeerThatClosesInOrderIsNoDeath) {
    open();
    target.reset();
    const std::uint64_t value = 1;
    EXPECT_EQ(repeat([&] {
                  const Code posted = put(0, &value, sizeof value);
                  if (posted != Code::ok) return posted;
                  const Code delivered = quiet();
                  return delivered == Code::ok ? Code::again : delivered;
              }),
              Code::unreachable);
    npushmem_event event{};
    EXPECT_EQ(origin->transport->poll_event(event), Code::again) << event.message;
}

TEST_F(MineTransportTest, APutToDeregisteredMemoryFailsInQuietOnce) {
    open();
    ASSERT_EQ(target->transport->deregister_memory(target->region), Code::ok);
    const std::uint64_t value = 1;
    ASSERT_EQ(put(0, &value, sizeof value), Code::ok);
    EXPECT_EQ(quiet(), Code::argument);
    EXPECT_EQ(quiet(), Code::ok);
    EXPECT_EQ(target->memory[0], 0U);
}

}  // namespace
}  // namespace mine_plugin
