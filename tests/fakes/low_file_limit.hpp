// SPDX-License-Identifier: BSD-3-Clause
// For tests of memory that cannot be committed.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>

namespace npushmem {

// No file of this process can grow beyond the limit until it is lifted.
class LowFileLimit {
public:
    explicit LowFileLimit(std::uint64_t bytes) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        rlimit low = before_;
        low.rlim_cur = bytes;
        handled_ = std::signal(SIGXFSZ, SIG_IGN);
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
    }
    void lift() {
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
        (void)std::signal(SIGXFSZ, handled_);
    }

private:
    rlimit before_{};
    sighandler_t handled_ = SIG_DFL;
};

}  // namespace npushmem
