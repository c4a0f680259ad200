#include "transports/ucx/ucx_status.hpp"

#include <gtest/gtest.h>

namespace npushmem::ucx {
namespace {

TEST(UcxStatus, TellsALostPeerFromAWrongCallAndFromAFullQueue) {
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
}  // namespace npushmem::ucx
