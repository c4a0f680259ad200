// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/ucx_wire.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/transports/network/wire_pair.hpp"

namespace {

int lost_devices = 0;  // calls of ucp_worker_create that fail as if the device had disappeared

}  // namespace

// The transport in this program calls this function instead of UCX's.
extern "C" ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                                          ucp_worker_h* worker) {
    if (lost_devices > 0) return --lost_devices, UCS_ERR_NO_DEVICE;
    using Function = decltype(&ucp_worker_create);
    static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "ucp_worker_create"));
    return real(context, params, worker);
}

namespace npushmem::ucx {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(UcxWire, AMissingDeviceIsReportedWithTheRequest) {
    const auto wire = UcxWire::open({"tcp", "nosuch0"}, 2);
    ASSERT_FALSE(wire.ok());
    EXPECT_EQ(wire.status().code(), Code::unreachable);
    EXPECT_THAT(wire.status().message(), AllOf(HasSubstr("NPUSHMEM_UCX_NET_DEVICES='nosuch0'"),
                                               HasSubstr("NPUSHMEM_UCX_TLS='tcp'"), HasSubstr("ucx_info -d")));
}

// A device that disappears between UCX's list and its use is left out.
TEST(UcxWire, ADeviceThatDisappearsWhileItOpensIsLeftOut) {
    for (const int failures : {1, 2}) {
        lost_devices = failures;
        EXPECT_TRUE(UcxWire::open({"tcp", "lo"}, 2).ok());
    }
    lost_devices = 3;
    EXPECT_EQ(UcxWire::open({"tcp", "lo"}, 2).status().code(), Code::unreachable);
    EXPECT_EQ(lost_devices, 0);
}

TEST(UcxWire, PeersOfAnotherMinorVersionAreRejected) {
    const auto wire = UcxWire::open({"tcp", "lo"}, 2);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    EXPECT_EQ(wire.value()->traits().protocol, "ucx " + std::to_string(major) + "." + std::to_string(minor));
}

std::string own_mappings() {
    std::ifstream maps("/proc/self/maps");
    return {std::istreambuf_iterator<char>(maps), {}};
}

// A killed process would leave such a segment behind.
TEST(UcxWire, AllocatesNoSharedMemory) {
    for (const char* transports : {"", "all", "tcp,posix,sysv"}) {
        const auto wire = UcxWire::open({transports, ""}, 2);
        ASSERT_TRUE(wire.ok()) << wire.status().message();
        EXPECT_THAT(own_mappings(), Not(AnyOf(HasSubstr("ucx_shm_posix"), HasSubstr("/SYSV")))) << transports;
    }
}

TEST(UcxWire, HasAWorkerForEachLane) {
    fakes::WirePair pair([] { return UcxWire::open({"tcp", "lo"}, 2); });
    fakes::lanes_can_be_reopened(pair);
}

// Otherwise PEs would update the same words in two different ways.
TEST(UcxWire, CarriesOutAtomicsAndRejectsPeersThatDoNot) {
    fakes::WirePair pair([] { return UcxWire::open({"tcp", "lo", true}, 2); });
    fakes::atomics_are_done(pair);
    const auto without = UcxWire::open({"tcp", "lo"}, 2);
    ASSERT_TRUE(without.ok()) << without.status().message();
    EXPECT_EQ(without.value()->traits().atomic_64, 0U);
    EXPECT_NE(pair.wires[0]->traits().protocol, without.value()->traits().protocol);
}

TEST(UcxWire, HasNoAtomicsThatItDoesNotList) {
    const auto wire = UcxWire::open({"tcp", "lo", true}, 2);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    network::WireContext context;
    npushmem_atomic op{};
    op.width = 8;
    op.operation = NPUSHMEM_ATOMIC_FETCH_XOR;  // UCX 1.13 stores nothing
    EXPECT_EQ(wire.value()->traits().atomic_64 >> op.operation & 1U, 0U);
    EXPECT_EQ(wire.value()->atomic({{1}, 0, 0, 0}, op, context), Code::unsupported);
    op.width = 4;
    op.operation = NPUSHMEM_ATOMIC_ADD;
    EXPECT_EQ(wire.value()->atomic({{1}, 0, 0, 0}, op, context), Code::unsupported);
}

TEST(UcxWire, AMessageThatIsTooLongIsRefused) {
    const auto wire = UcxWire::open({"tcp", "lo"}, 2);
    ASSERT_TRUE(wire.ok()) << wire.status().message();
    const Bytes long_one(wire.value()->traits().message_bytes + 1);
    EXPECT_EQ(wire.value()->send({1}, long_one, {}), Code::argument);
}

}  // namespace
}  // namespace npushmem::ucx
