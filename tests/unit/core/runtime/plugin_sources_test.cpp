// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/plugin_sources.hpp"

#include <gtest/gtest.h>

#include "core/base/launcher_channel.hpp"

namespace npushmem {
namespace {

TEST(NamedBootstrap, IsChosenByTheLauncherOrByTheUser) {
    Settings settings;
    settings.bootstrap = launcher_bootstrap;
    EXPECT_EQ(reason_of_named_bootstrap(settings), "set by NPUSHMEM_BOOTSTRAP");
    settings.launcher_fd = "5:1:2";
    EXPECT_EQ(reason_of_named_bootstrap(settings), "chosen by npushmem-run; NPUSHMEM_BOOTSTRAP selects another one");
    settings.bootstrap = "pmix";
    EXPECT_EQ(reason_of_named_bootstrap(settings), "set by NPUSHMEM_BOOTSTRAP");
}

}  // namespace
}  // namespace npushmem
