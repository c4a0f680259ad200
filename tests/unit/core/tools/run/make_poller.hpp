// A poller of a test's own.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "core/tools/run/poller.hpp"

namespace npushmem::run {

inline Poller make_poller() {
    auto made = Poller::open();
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
}

}  // namespace npushmem::run
