// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transports/ucx/ucx_context.hpp"

namespace npushmem::ucx {
namespace {

TEST(UcxStatus, DistinguishesALostPeerAWrongCallAndAFullQueue) {
    EXPECT_EQ(code_of_status(UCS_OK), Code::ok);
    EXPECT_EQ(code_of_status(UCS_ERR_NO_RESOURCE), Code::again);
    for (const auto status : {UCS_ERR_CONNECTION_RESET, UCS_ERR_NOT_CONNECTED, UCS_ERR_CANCELED})
        EXPECT_EQ(code_of_status(status), Code::peer_dead) << ucs_status_string(status);
    EXPECT_EQ(code_of_status(UCS_ERR_ENDPOINT_TIMEOUT), Code::timeout);
    EXPECT_EQ(code_of_status(UCS_ERR_UNREACHABLE), Code::unreachable);
    EXPECT_EQ(code_of_status(UCS_ERR_INVALID_PARAM), Code::argument);
    EXPECT_EQ(code_of_status(UCS_ERR_IO_ERROR), Code::system);
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* info =
    "#\n# UCP context\n#\n#     component 0  :  self\n#     component 4  :  ib\n#            md 0  :  component 0  "
    "self \n"
    "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
    "#      resource 1  :  md 1  dev 1  flags -- tcp/eth0\n"
    "#      resource 2  :  md 2  dev 2  flags -a rc_verbs/rxe0:1\n"
    "#      resource 3  :  md 2  dev 2  flags -- ud_verbs/rxe0:1\n# memory: 1.34MB, file descriptors: 5\n";

TEST(NetworksOfContext, AreReadFromTheLinesOfResources) {
    EXPECT_THAT(transports_of(info), ElementsAre("self", "tcp", "rc_verbs", "ud_verbs"));
    EXPECT_THAT(transports_of(""), IsEmpty());
    EXPECT_THAT(transports_of("#      resource 0  :  md 0"), IsEmpty());
    EXPECT_THAT(transports_of("#      resource 0  :  md 0  dev 0  flags -"), IsEmpty());
}

TEST(NetworksOfContext, AreRdmaOnlyIfSomeTransportIs) {
    for (const char* rdma : {"rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "srd", "gga_mlx5"})
        EXPECT_EQ(network_of({"self", "tcp", rdma}), NetworkType::rdma) << rdma;
    EXPECT_EQ(network_of({"tcp"}), NetworkType::tcp);
    EXPECT_EQ(network_of({"self", "tcp", "sysv", "posix", "cma", "tcp"}), NetworkType::tcp);
    EXPECT_EQ(network_of({"tcp", "cuda_copy", "cuda_ipc", "gdr_copy", "rocm_copy", "ze_copy"}), NetworkType::tcp)
        << "transports of GPUs are no network";
    EXPECT_EQ(network_of({"self", "posix", "cuda_ipc"}), NetworkType::unknown);
    EXPECT_EQ(network_of({}), NetworkType::unknown);
}

// The parser accepts the output of this machine's UCX.
TEST(NetworksOfContext, ReportAContextOverTcp) {
    ucp_config_t* config = nullptr;
    ASSERT_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
    ASSERT_EQ(ucp_config_modify(config, "TLS", "tcp"), UCS_OK);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
    ucp_context_h context = nullptr;
    const ucs_status_t done = ucp_init(&params, config, &context);
    ucp_config_release(config);
    ASSERT_EQ(done, UCS_OK);
    const auto found = transports_of(info_of(context));
    ucp_cleanup(context);
    EXPECT_EQ(NetworkType::tcp, network_of(found)) << found.size();
}

}  // namespace

}  // namespace npushmem::ucx
