// SPDX-License-Identifier: BSD-3-Clause
// A bootstrap that ignores the launcher would make each process a job of its own.
#include <gmock/gmock.h>

#include "core/plugin/bootstrap_choice.hpp"
#include "core/plugin/loader.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SingleProcessJob : public ::testing::Test {
protected:
    [[nodiscard]] Status check(const FakeEnvironment& environment, int confidence = 0, int nranks = 1) const {
        const PluginFinder finder({ABI_PLUGIN_DIR});
        auto choice = named_bootstrap(finder, "sound", environment, host_.table(), params_);
        EXPECT_TRUE(choice.ok()) << choice.status().message();
        EXPECT_EQ(choice.value().confidence, 0) << "this plugin recognises nothing";
        choice.value().confidence = confidence;
        return check_single_process_job(choice.value(), nranks, environment, host_.table(), params_);
    }

    fakes::FakeHost host_;
    npushmem_bootstrap_params params_{sizeof params_, -1, -1, 0, nullptr, nullptr};
    const FakeEnvironment two_{{"OMPI_COMM_WORLD_SIZE", "2"}};
};

TEST_F(SingleProcessJob, IsRefusedBelowALauncherOfSeveral) {
    const Status refused = check(two_);
    EXPECT_EQ(refused.code(), Code::config);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("mpirun of Open MPI has started this process as one of 2"),
                      HasSubstr("bootstrap sound ignores that"), HasSubstr("alone"),
                      HasSubstr("unset NPUSHMEM_BOOTSTRAP"), HasSubstr("pmix"), HasSubstr("NPUSHMEM_NPES=1")));
    for (const char* variable : {"PMI_SIZE", "SLURM_STEP_NUM_TASKS", "PMIX_NAMESPACE", "PMI_PORT", "PMI_FD"})
        EXPECT_THAT(check({{variable, "3"}}).message(), HasSubstr(variable));
}

TEST_F(SingleProcessJob, OfALibraryThatIsNotTheLaunchersIsRefused) {
    EXPECT_THAT(check(two_, NPUSHMEM_RECOGNISED_LIBRARY).message(), HasSubstr("is not the launcher's"));
}

TEST_F(SingleProcessJob, IsRefusedBelowNpushmemRun) {
    host_.set("NPES", "2");
    EXPECT_THAT(
        check({{"NPUSHMEM_LAUNCHER_FD", "3:5"}}).message(),
        AllOf(HasSubstr("npushmem-run has started this process as one of 2"), HasSubstr("unset NPUSHMEM_BOOTSTRAP")));
}

TEST_F(SingleProcessJob, IsRefusedBelowAnotherLauncherWhereTheUserWantsSeveral) {
    host_.set("NPES", "2");
    EXPECT_THAT(check(two_).message(), HasSubstr("mpirun of Open MPI has started this process as one of 2"));
}

TEST_F(SingleProcessJob, IsRefusedWhereTheUserWantsSeveral) {
    host_.set("NPES", "2");
    for (const int confidence : {0, NPUSHMEM_RECOGNISED_LIBRARY}) {
        const Status refused = check({}, confidence);
        EXPECT_EQ(refused.code(), Code::config);
        EXPECT_THAT(refused.message(), AllOf(HasSubstr("NPUSHMEM_NPES is 2"), HasSubstr("bootstrap sound ignores that"),
                                             HasSubstr("with npushmem-run, or unset NPUSHMEM_NPES"),
                                             Not(HasSubstr("has started")), Not(HasSubstr("launcher"))));
    }
}

TEST_F(SingleProcessJob, IsAllowedWithoutALauncherOfSeveralProcesses) {
    EXPECT_TRUE(check({}).ok());
    EXPECT_TRUE(check({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "3"}}).ok());
    EXPECT_TRUE(check(two_, 0, 2).ok()) << "this is a job of two";
}

TEST_F(SingleProcessJob, IsAllowedWhenABootstrapDetectedTheLauncher) {
    for (const int confidence : {NPUSHMEM_RECOGNISED_LAUNCHER - 5, NPUSHMEM_RECOGNISED_LAUNCHER + 5})
        EXPECT_TRUE(check(two_, confidence).ok());
}

TEST_F(SingleProcessJob, IsAllowedWhenTheUserRequestsIt) {
    EXPECT_TRUE(check(two_, NPUSHMEM_RECOGNISED_BY_USER).ok());
    params_.attribute = &host_;
    EXPECT_TRUE(check(two_).ok());
    params_.attribute = nullptr;
    params_.uniqueid = &host_;
    EXPECT_TRUE(check(two_).ok());
    params_.uniqueid = nullptr;
    host_.set("NPES", "1");
    EXPECT_TRUE(check(two_).ok());
    host_.set("NPES", "-1");
    host_.set("UNIQUEID", "00");
    EXPECT_TRUE(check(two_).ok());
}

}  // namespace
}  // namespace npushmem
