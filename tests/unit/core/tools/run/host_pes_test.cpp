#include "core/tools/run/host_pes.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/tools/run/host_plan.hpp"

namespace npushmem::run {
namespace {

// All sizes that matter: every PE is on one host, and on the one that it would be on if hosts were emulated.
TEST(HostPes, DealsPesAsEmulatedHostsDo) {
    for (int npes = 1; npes <= 24; ++npes)
        for (int hosts = 1; hosts <= npes; ++hosts)
            for (const MapBy rule : {MapBy::block, MapBy::round_robin}) {
                std::vector<int> host_of(static_cast<std::size_t>(npes), -1);
                for (int host = 0; host < hosts; ++host) {
                    const HostPes pes = pes_of_host(host, hosts, npes, rule);
                    for (int i = 0; i < pes.count; ++i)
                        host_of.at(static_cast<std::size_t>(pes.numbering.of(i))) = host;
                }
                for (int pe = 0; pe < npes; ++pe)
                    EXPECT_EQ(host_of[static_cast<std::size_t>(pe)], emulated_host_of(pe, npes, hosts, rule))
                        << "PE " << pe << " of " << npes << " on " << hosts;
            }
}

}  // namespace
}  // namespace npushmem::run
