#include "core/api/library.hpp"

#include <gtest/gtest.h>

namespace npushmem::api {

namespace {

TEST(OpenshmemNames, AreThoseOfFunctionsAndConstants) {
    EXPECT_EQ(to_openshmem_names("npushmem_long_put: PE 9 does not exist"), "shmem_long_put: PE 9 does not exist");
    EXPECT_EQ(to_openshmem_names("call npushmem_init first"), "call shmem_init first");
    EXPECT_EQ(to_openshmem_names("the team is NPUSHMEM_TEAM_INVALID"), "the team is SHMEM_TEAM_INVALID");
    EXPECT_EQ(to_openshmem_names("NPUSHMEM_SIGNAL_OP_SET, NPUSHMEM_CMP_EQ."), "SHMEM_SIGNAL_SET, SHMEM_CMP_EQ.");
    EXPECT_EQ(to_openshmem_names("npushmem_a npushmem_b"), "shmem_a shmem_b");
}

TEST(OpenshmemNames, LeaveTheRestAlone) {
    for (const char* text : {"it does not export npushmem_transport_entry_v1", "npushmem_bootstrap_entry_v1"})
        EXPECT_EQ(to_openshmem_names(text), text);
    for (const char* text : {"", "npushmemx_init_attr: no", "NPUSHMEM_TIMEOUT=1s", "npushmem-info -c", "libnpushmem.so",
                             "my_npushmem_put", "mynpushmem_put", "NPUSHMEM_TEAM", "/x/npushmem/y"})
        EXPECT_EQ(to_openshmem_names(text), text);
}

}  // namespace

}  // namespace npushmem::api
