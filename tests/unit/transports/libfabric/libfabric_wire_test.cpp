#include "transports/libfabric/libfabric_wire.hpp"

#include <gmock/gmock.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>

#include "tests/unit/transports/network/wire_pair.hpp"

namespace npushmem::libfabric {
namespace {

using ::testing::HasSubstr;

Result<std::unique_ptr<network::Wire>> open_over_loopback() {
    auto chosen = choose_provider({"tcp;ofi_rxm", "lo"}, query_provider);
    if (!chosen.ok()) return chosen.status();
    return LibfabricWire::open(std::move(chosen).value(), 2);
}

TEST(LibfabricError, TellsALostPeerFromAWrongCallAndFromAFullQueue) {
    EXPECT_EQ(code_of_error(FI_EAGAIN), Code::again);
    EXPECT_EQ(code_of_error(FI_ECONNRESET), Code::peer_dead);
    EXPECT_EQ(code_of_error(FI_EHOSTUNREACH), Code::unreachable);
    EXPECT_EQ(code_of_error(FI_ETIMEDOUT), Code::timeout);
    EXPECT_EQ(code_of_error(FI_EACCES), Code::range);
    EXPECT_EQ(code_of_error(FI_EOTHER), Code::system);
}

TEST(LibfabricWire, HasAnEndpointForEachLane) {
    fakes::WirePair pair(open_over_loopback);
    fakes::lanes_come_and_go(pair);
}

// No more descriptors: a lane that cannot be made is told with what to do, and the others go on.
TEST(LibfabricWire, SaysThatALaneCannotBeMade) {
    fakes::WirePair pair(open_over_loopback);
    const Bytes message(8);
    ASSERT_EQ(pair.insist([&] { return pair.wires[0]->send({1}, message, {}); }), Code::ok);
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
    EXPECT_THAT(pair.wires[0]->why(), HasSubstr("NPUSHMEM_LIBFABRIC_LANES"));
    ASSERT_EQ(pair.insist([&] { return pair.wires[0]->send({1}, message, {}); }), Code::ok);
    EXPECT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 2; }));
    ASSERT_EQ(pair.insist([&] { return pair.wires[0]->send({1, 1}, message, {}); }), Code::ok);
    EXPECT_TRUE(pair.until([&] { return pair.notes[1].messages.size() == 3; }));
}

}  // namespace
}  // namespace npushmem::libfabric
