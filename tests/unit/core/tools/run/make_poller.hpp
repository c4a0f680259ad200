// SPDX-License-Identifier: BSD-3-Clause
// A poller of a test's own.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "core/tools/run/dispatching_poller.hpp"

namespace npushmem::run {

inline DispatchingPoller make_poller() {
    auto made = DispatchingPoller::open();
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
}

}  // namespace npushmem::run
