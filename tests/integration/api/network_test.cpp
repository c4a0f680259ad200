// Jobs over libfabric. Their two hosts are emulated ones on this machine: their PEs cannot map each other's memory, so
// what is between them goes over the network's loopback.
#ifdef API_TEST_LIBFABRIC  // the plugin was built
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// How a job of two PEs that checks puts and gets ended, and what it reported.
std::pair<int, std::string> run_rma(const Words& environment, const std::string& nodes = "2") {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_INFO=1", "NPUSHMEM_SYMMETRIC_SIZE=16M",
                            "NPUSHMEM_LIBFABRIC_DOMAIN=lo",        // tests beside this one make other interfaces
                            "NPUSHMEM_LIBFABRIC_PEER_TIMEOUT=0"};  // a busy machine is no lost peer
    settings.environment.insert(settings.environment.end(), environment.begin(), environment.end());
    const Leftovers leftovers;
    run::JobUnderTest job({"-n", "2", "--nodes", nodes, std::string(API_TEST_FOLDER) + "/api_rma"}, settings);
    const int status = job.end();
    EXPECT_EQ(leftovers.found(), "");
    return {status, job.errors()};
}

TEST(RemoteTransport, CarriesPutsAndGetsBetweenHosts) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=libfabric"});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, AllOf(HasSubstr("pe 1: libfabric (libfabric "), Not(HasSubstr("between hosts: "))));
}

TEST(RemoteTransport, AutoFindsOneAndSaysWhich) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=auto", "NPUSHMEM_REMOTE_ORDER=nosuch,libfabric"});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, AllOf(HasSubstr("between hosts: libfabric (NPUSHMEM_REMOTE_TRANSPORT=auto; not nosuch: "),
                              HasSubstr("pe 1: libfabric (libfabric ")));
}

TEST(RemoteTransport, AutoOpensNoneInAJobOfOneHost) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=auto"}, "1");
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, Not(HasSubstr("libfabric")));
}

TEST(RemoteTransport, AProviderThatDoesNotExistIsNamed) {
    const auto [status, report] =
        run_rma({"NPUSHMEM_REMOTE_TRANSPORT=libfabric", "NPUSHMEM_LIBFABRIC_PROVIDER=nosuch"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, HasSubstr("NPUSHMEM_LIBFABRIC_PROVIDER='nosuch': none here"));
}

TEST(RemoteTransport, AnInterfaceThatDoesNotExistIsNamedWithThoseThatDo) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=libfabric", "NPUSHMEM_LIBFABRIC_DOMAIN=nosuch0"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, AllOf(HasSubstr("no domain 'nosuch0', only"), HasSubstr("lo")));
}

}  // namespace
}  // namespace npushmem::api_test
#endif
