// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/libfabric_wire.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/poller.hpp"
#include "tests/unit/transports/network/wire_pair.hpp"

namespace npushmem::libfabric {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<std::unique_ptr<network::Wire>> open_over_loopback(bool atomics) {
    auto chosen = choose_provider({"tcp;ofi_rxm", "lo", atomics}, query_provider);
    if (!chosen.ok()) return chosen.status();
    return LibfabricWire::open(std::move(chosen).value(), 2);
}

TEST(LibfabricError, DistinguishesALostPeerAWrongCallAndAFullQueue) {
    EXPECT_EQ(code_of_error(FI_EAGAIN), Code::again);
    EXPECT_EQ(code_of_error(FI_ECONNRESET), Code::peer_dead);
    EXPECT_EQ(code_of_error(FI_ECANCELED), Code::peer_dead);
    EXPECT_EQ(code_of_error(FI_EHOSTUNREACH), Code::unreachable);
    EXPECT_EQ(code_of_error(FI_ETIMEDOUT), Code::timeout);
    EXPECT_EQ(code_of_error(FI_EACCES), Code::range);
    EXPECT_EQ(code_of_error(FI_EOTHER), Code::system);
}

std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t size = 0;
    std::size_t resident = 0;
    file >> size >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(LibfabricWire, AllocatesLittleMemory) {
    ASSERT_TRUE(choose_provider({"tcp;ofi_rxm", "lo"}, query_provider).ok());
    const std::size_t before = resident_bytes();
    const auto wire = open_over_loopback(false);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    constexpr std::size_t most = 10 << 20;
    EXPECT_LT(resident_bytes(), before + most);
}

TEST(LibfabricWire, LeavesTheEnvironmentAsItWas) {
    for (const char* name : {"FI_OFI_RXM_BUFFER_SIZE", "FI_OFI_RXM_MSG_RX_SIZE", "FI_UNIVERSE_SIZE"}) {
        (void)::unsetenv(name);
        ASSERT_TRUE(open_over_loopback(false).ok());
        EXPECT_EQ(std::getenv(name), nullptr) << name;
        (void)::setenv(name, "8192", 1);
        ASSERT_TRUE(open_over_loopback(false).ok());
        EXPECT_STREQ(std::getenv(name), "8192") << name;
        (void)::unsetenv(name);
    }
}

TEST(LibfabricWire, HasAnEndpointForEachLane) {
    fakes::WirePair pair([] { return open_over_loopback(false); });
    fakes::lanes_can_be_reopened(pair);
}

std::size_t connected_sockets() {
    return static_cast<std::size_t>(std::count_if(
        std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator(),
        [](const auto& entry) {
            sockaddr_storage peer{};
            socklen_t bytes = sizeof peer;
            auto* const address = reinterpret_cast<sockaddr*>(&peer);
            return ::getpeername(std::stoi(entry.path().filename()), address, &bytes) == 0 && peer.ss_family == AF_INET;
        }));
}

// Also where both send first. Otherwise each frame costs a segment that only acknowledges it.
TEST(LibfabricWire, TwoPesShareTheConnectionOfTheFirstLane) {
    const std::size_t before = connected_sockets();
    fakes::WirePair pair([] { return open_over_loopback(false); });
    ASSERT_TRUE(pair.wires[1]->add_peer(0, pair.wires[0]->address().value()).ok());
    const Bytes message(8, std::byte{7});
    std::array<Code, 2> sent{Code::again, Code::again};
    ASSERT_TRUE(pair.until([&] {
        for (int i : {0, 1})
            if (sent[i] == Code::again) sent[i] = pair.wires[i]->send({1 - i, 0}, message, {});
        return pair.notes[0].messages.size() == 1 && pair.notes[1].messages.size() == 1;
    })) << pair.wires[0]->last_error()
        << pair.wires[1]->last_error();
    EXPECT_TRUE(pair.until([&] { return connected_sockets() == before + 2; })) << connected_sockets() - before;
}

TEST(LibfabricWire, LeavesAtomicsToTheTargetByDefault) {
    const auto wire = open_over_loopback(false);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    EXPECT_EQ(wire.value()->traits().atomic_32 | wire.value()->traits().atomic_64, 0U);
}

// "that PE uses ..., this one ..." says so of another version of the protocol and of another family of addresses.
TEST(LibfabricWire, ReportsTheCompatibilityOfPeers) {
    const auto wire = open_over_loopback(false);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    EXPECT_THAT(wire.value()->traits().protocol,
                AllOf(HasSubstr("tcp;ofi_rxm, protocol "), HasSubstr("addresses FI_SOCKADDR_IN")));
}

TEST(LibfabricWire, AProviderWithoutAtomicsIsNamed) {
    auto chosen = choose_provider({"net", "lo", true}, query_provider);
    if (!chosen.ok()) GTEST_SKIP() << chosen.status().message();  // newer libraries have no such provider
    const auto wire = LibfabricWire::open(std::move(chosen).value(), 2);
    ASSERT_FALSE(wire.ok());
    EXPECT_EQ(wire.status().code(), Code::unsupported);
    EXPECT_THAT(wire.status().message(), AllOf(HasSubstr("net on lo"), HasSubstr("has no atomic operations"),
                                               HasSubstr("NPUSHMEM_LIBFABRIC_NATIVE_ATOMICS=always")));
}

// A peer that is lost never completes what was sent to it, and must not delay the end.
TEST(LibfabricWire, HasNoUnsentMessagesForAForgottenPeer) {
    fakes::WirePair pair([] { return open_over_loopback(false); });
    const Bytes message(max_message_bytes);
    ASSERT_EQ(pair.retry_until_posted([&] {
        return pair.wires[0]->send({1, 0}, message, {});
    }),
              Code::ok)
        << pair.wires[0]->last_error();
    EXPECT_TRUE(pair.wires[0]->has_unsent_messages()) << "the message is in flight until the next progress";
    pair.wires[0]->forget(0);
    EXPECT_TRUE(pair.wires[0]->has_unsent_messages());
    pair.wires[0]->forget(1);
    EXPECT_FALSE(pair.wires[0]->has_unsent_messages());
}

// A port of the loopback interface.
class Port {
public:
    Port() {
        socklen_t bytes = sizeof address_;
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
        EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address_), &bytes), 0);
    }
    [[nodiscard]] std::span<const std::byte> address() const { return std::as_bytes(std::span(&address_, 1)); }
    // Connections to the port are neither accepted nor refused any more, as behind a firewall.
    void drop_connections() {
        EXPECT_EQ(::listen(socket_.get(), 0), 0);
        for (int error = 0; error != EINPROGRESS;) {
            kept_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            pollfd answer{kept_.back().get(), POLLOUT, 0};
            const auto* const to = reinterpret_cast<const sockaddr*>(&address_);
            error = ::connect(kept_.back().get(), to, sizeof address_) == 0 || ::poll(&answer, 1, 100) > 0
                        ? 0
                        : EINPROGRESS;
            if (kept_.size() > 100) return ADD_FAILURE() << "the port accepts every connection";
        }
    }

private:
    FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in address_{};
    std::vector<FileDescriptor> kept_;
};

TEST(LibfabricWire, AProbeDoesNotWaitForAnAnswer) {
    const auto wire = open_over_loopback(false);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    Port silent;
    silent.drop_connections();
    const Port refusing;
    ASSERT_TRUE(wire.value()->add_peer(0, silent.address()).ok());
    ASSERT_TRUE(wire.value()->add_peer(1, refusing.address()).ok());
    EXPECT_FALSE(wire.value()->end_probe(1)) << "no probe has been started";
    for (const int pe : {0, 1}) wire.value()->start_probe(pe);
    EXPECT_FALSE(wire.value()->end_probe(0)) << "nothing is known";
    EXPECT_TRUE(wire.value()->end_probe(1));
    EXPECT_FALSE(wire.value()->end_probe(1)) << "the probe has ended";
}

// Otherwise PEs would update the same words in two different ways.
TEST(LibfabricWire, CarriesOutAtomicsAndRejectsPeersThatDoNot) {
    fakes::WirePair pair([] { return open_over_loopback(true); });
    fakes::atomics_are_done(pair);
    const auto without = open_over_loopback(false);
    ASSERT_TRUE(without.ok()) << without.status().message();
    EXPECT_NE(pair.wires[0]->traits().protocol, without.value()->traits().protocol);
}

// A process outside of the job that speaks the provider's protocol must not guess a key.
TEST(LibfabricWire, MemoryKeysAreRandom) {
    const auto wire = open_over_loopback(false);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    Bytes memory(4096);
    for (int i = 0; i < 2; ++i) {
        const auto registered = wire.value()->register_memory(memory.data(), memory.size());
        ASSERT_TRUE(registered.ok()) << registered.status().message();
        std::uint64_t key = 0;
        ASSERT_EQ(registered.value().key.size(), sizeof key);
        std::memcpy(&key, registered.value().key.data(), sizeof key);
        EXPECT_GT(key, std::uint64_t{1} << 32);  // less than once in 2^32 runs by chance
    }
}

// Without descriptors a lane that cannot be made is reported with a remedy, and other lanes continue.
TEST(LibfabricWire, ReportsALaneThatCannotBeMade) {
    fakes::WirePair pair([] { return open_over_loopback(false); });
    const Bytes message(8);
    ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->send({1}, message, {}); }), Code::ok);
    ASSERT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 1; }));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none = before;
    none.rlim_cur = 3;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const Code code = pair.wires[0]->send({1, 1}, message, {});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_NE(code, Code::ok);
    EXPECT_NE(code, Code::again);
    EXPECT_THAT(pair.wires[0]->last_error(), HasSubstr("NPUSHMEM_LIBFABRIC_LANES"));
    ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->send({1}, message, {}); }), Code::ok);
    EXPECT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 2; }));
    ASSERT_EQ(pair.retry_until_posted([&] { return pair.wires[0]->send({1, 1}, message, {}); }), Code::ok);
    EXPECT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 3; }));
}

}  // namespace
}  // namespace npushmem::libfabric
