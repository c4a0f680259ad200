// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/status.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace npushmem {
namespace {

TEST(Report, TruncatesAndTerminatesALongMessage) {
    npushmem_error error{};
    const std::string longer(5000, 'm');
    EXPECT_EQ(report(Code::timeout, longer, &error), NPUSHMEM_E_TIMEOUT);
    EXPECT_EQ(error.code, NPUSHMEM_E_TIMEOUT);
    EXPECT_EQ(std::strlen(error.message), sizeof error.message - 1);
    EXPECT_EQ(report(Status{Code::system, "x"}, nullptr), NPUSHMEM_E_SYSTEM);
}

TEST(StatusFrom, ReadsAtMostTheSizeOfTheMessage) {
    npushmem_error error{};
    std::memset(error.message, 'x', sizeof error.message);
    EXPECT_EQ(status_from(NPUSHMEM_E_MEMORY, error).message().size(), sizeof error.message);
    EXPECT_TRUE(status_from(NPUSHMEM_OK, error).ok());
}

TEST(StatusFrom, NamesTheCodeIfTheMessageIsEmpty) {
    const Status silent = status_from(NPUSHMEM_E_PEER_DEAD, npushmem_error{});
    EXPECT_THAT(silent.message(), ::testing::HasSubstr("peer dead"));
}

TEST(Status, WithinPrependsTheContext) {
    const Status inner(Code::range, "7 is too large");
    EXPECT_EQ(inner.within("reading X").message(), "reading X: 7 is too large");
    EXPECT_EQ(inner.within("reading X").code(), Code::range);
    EXPECT_TRUE(Status{}.within("reading X").ok());
}

}  // namespace
}  // namespace npushmem
