// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/streams.hpp"

namespace npushmem {

namespace {

TEST(WholeFile, ReturnsTheContent) {
    const std::string path = ::testing::TempDir() + "whole_file_" + std::to_string(::getpid());
    for (const std::size_t bytes : {0U, 1U, 65536U, 200'000U}) {
        const std::string content(bytes, '\0');
        std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
        const auto read = read_whole_file(path);
        EXPECT_TRUE(read.ok() && read.value() == content) << bytes;
    }
    std::filesystem::remove(path);
}

TEST(WholeFile, FailsWithTheSystemsReason) {
    EXPECT_EQ(read_whole_file("/nonexistent").status().message(), "No such file or directory");
    EXPECT_EQ(read_whole_file("/").status().message(), "Is a directory");
    EXPECT_EQ(read_whole_file("/proc/self/mem").status().code(), Code::system);
}

}  // namespace

}  // namespace npushmem
