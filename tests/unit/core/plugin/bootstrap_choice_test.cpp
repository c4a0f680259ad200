// SPDX-License-Identifier: BSD-3-Clause
// The choice of AUTO among few plugins; tests under real launchers cover the choice among real plugins.
#include "core/plugin/bootstrap_choice.hpp"

#include <gmock/gmock.h>

#include "npushmem/testing/fake_host.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;

Status choose_without_plugins(const FakeEnvironment& environment, const fakes::FakeHost& host) {
    npushmem_bootstrap_params params{sizeof params, -1, -1, 0, nullptr, nullptr};
    return choose_bootstrap(PluginFinder({"/nonexistent"}), environment, host.table(), params).status();
}

TEST(BootstrapChoice, RefusesToStartProcessesOfALauncherWithoutAPluginAsSingleProcessJobs) {
    const fakes::FakeHost host;
    for (const auto& [variable, launcher] :
         {std::pair{"OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"}, std::pair{"PMI_SIZE", "a PMI launcher"},
          std::pair{"SLURM_STEP_NUM_TASKS", "srun"}}) {
        const Status refused = choose_without_plugins({{variable, "4"}}, host);
        EXPECT_EQ(refused.code(), Code::config);
        EXPECT_THAT(refused.message(), HasSubstr(std::string(launcher) + " has started this process as one of 4"));
        EXPECT_THAT(refused.message(), HasSubstr("npushmem-info -p"));
    }
}

TEST(BootstrapChoice, ALauncherWithoutAProcessCountIsNotIgnored) {
    const fakes::FakeHost host;
    for (const char* variable : {"PMIX_NAMESPACE", "PMI_PORT", "PMI_FD"}) {
        const Status refused = choose_without_plugins({{variable, "x"}}, host);
        EXPECT_EQ(refused.code(), Code::config);
        EXPECT_THAT(refused.message(), HasSubstr(std::string("has started this process (") + variable + " is set)"));
    }
    // A variable with a count decides first.
    EXPECT_EQ(choose_without_plugins({{"PMIX_NAMESPACE", "x"}, {"SLURM_STEP_NUM_TASKS", "1"}}, host).code(),
              Code::plugin_missing);
}

TEST(BootstrapChoice, AcceptsASingleProcessOfAnUnsupportedLauncher) {
    const fakes::FakeHost host;
    // The search continues with the installed plugins; there are none here.
    EXPECT_EQ(choose_without_plugins({{"OMPI_COMM_WORLD_SIZE", "1"}}, host).code(), Code::plugin_missing);
    EXPECT_EQ(choose_without_plugins({{"PMI_SIZE", "many"}}, host).code(), Code::plugin_missing);
    EXPECT_EQ(choose_without_plugins({}, host).code(), Code::plugin_missing);
}

TEST(BootstrapChoice, AUniqueIdOverridesEveryLauncher) {
    fakes::FakeHost host;
    host.set("UNIQUEID", "00");
    const Status missing = choose_without_plugins({{"OMPI_COMM_WORLD_SIZE", "4"}}, host);
    EXPECT_EQ(missing.code(), Code::plugin_missing);
    EXPECT_THAT(missing.message(), HasSubstr("'uid'"));
}

}  // namespace
}  // namespace npushmem
