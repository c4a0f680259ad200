// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/libfabric_wire.hpp"

#include <gmock/gmock.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

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
    constexpr std::size_t most = 32 << 20;
    EXPECT_LT(resident_bytes(), before + most);
}

TEST(LibfabricWire, LeavesTheEnvironmentAsItWas) {
    for (const char* name : {"FI_OFI_RXM_BUFFER_SIZE", "FI_OFI_RXM_MSG_RX_SIZE"}) {
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
