// SPDX-License-Identifier: BSD-3-Clause
// A test of a program of several PEs: npushmem::testing::LocalJob runs the PEs as threads of one GoogleTest program,
// here over shared memory, over a transport that delays and reorders what no fence orders, and over a network in
// memory.
//
//     $ ./local_job --gtest_brief=1 | grep -o 'PASSED.*'
//     PASSED  ] 3 tests.
//
// In a debugger all PEs stop together: gdb --args ./local_job --gtest_filter='*0'
#include <gtest/gtest.h>
#include <npushmem.h>

#include <memory>
#include <npushmem/testing/fake_transport.hpp>
#include <npushmem/testing/local_job.hpp>
#include <vector>

namespace {

using npushmem::fakes::FakeFabric;
using npushmem::fakes::FakeTransport;
using npushmem::testing::LocalJob;

// The program under test: every PE sends its values to its right neighbour with a signal, and returns those it
// received.
std::vector<long> receive_from_left(const std::vector<long>& mine) {
    auto* const values = static_cast<long*>(npushmem_calloc(mine.size(), sizeof(long)));
    auto* const arrived = static_cast<std::uint64_t*>(npushmem_calloc(1, sizeof(std::uint64_t)));
    const int right = (npushmem_my_pe() + 1) % npushmem_n_pes();
    npushmem_long_put_signal(values, mine.data(), mine.size(), arrived, 1, NPUSHMEM_SIGNAL_OP_SET, right);
    npushmem_signal_wait_until(arrived, NPUSHMEM_CMP_EQ, 1);
    std::vector<long> received(values, values + mine.size());
    npushmem_free(arrived);
    npushmem_free(values);
    return received;
}

void check(int pe) {
    const int left = (pe + npushmem_n_pes() - 1) % npushmem_n_pes();
    EXPECT_EQ(receive_from_left(std::vector<long>(1000, pe)), std::vector<long>(1000, left));
}

class Neighbours : public ::testing::TestWithParam<const char*> {};

TEST_P(Neighbours, ReceiveFromTheLeft) { LocalJob(4).set("NPUSHMEM_TRANSPORTS", GetParam()).run(check); }

INSTANTIATE_TEST_SUITE_P(Transports, Neighbours, ::testing::Values("self,p2p", "self,fault(p2p)"));

TEST(NeighboursInMemory, ReceiveFromTheLeft) {
    FakeFabric fabric(FakeFabric::Delivery::adversarial, /*seed=*/7);
    LocalJob(3)
        .add_transport(
            "memory",
            [&](const npushmem_transport_params& params) { return std::make_unique<FakeTransport>(fabric, params.pe); })
        .set("NPUSHMEM_TRANSPORTS", "self,memory")
        .run(check);
}

}  // namespace
