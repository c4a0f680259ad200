// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/start_job.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "npushmem/plugin/bootstrap.h"

namespace npushmem::run {

namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

bool has_loaded_plugins() {
    std::ifstream maps("/proc/self/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    return text.find("libnpushmem_local_plugins.so") != std::string::npos;
}

Result<std::unique_ptr<Rendezvous>> open_with(const char* setting) {
    const char* const environment[] = {"NPUSHMEM_NPES=2", "NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo", setting, nullptr};
    return Rendezvous::open(EnvironmentBlock::copy_of(environment));
}

TEST(Rendezvous, HasItsPluginInThisProgram) {
    const auto opened = open_with(nullptr);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_FALSE(has_loaded_plugins());
    const std::string id = opened.value()->unique_id();
    EXPECT_EQ(id.size(), 2U * NPUSHMEM_UNIQUEID_BYTES);
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]+"));
    EXPECT_NE(id, open_with(nullptr).value()->unique_id()) << "two jobs have one id";
}

// The PEs would load the same file, and report it too.
TEST(Rendezvous, UsesTheFileInADirectoryOfTheUser) {
    const std::filesystem::path directory = ::testing::TempDir() + "npushmem_start_job_" + std::to_string(::getpid());
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "libnpushmem_bootstrap_uid.so") << "not a library";
    const auto opened = open_with(("NPUSHMEM_PLUGIN_PATH=" + directory.string()).c_str());
    std::filesystem::remove_all(directory);
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.status().message(), HasSubstr("the job's rendezvous cannot be opened"));
    EXPECT_THAT(opened.status().message(), HasSubstr((directory / "libnpushmem_bootstrap_uid.so").string()));
}

TEST(Rendezvous, ReportsWrongSettings) {
    const auto opened = open_with("NPUSHMEM_BOOTSTRAP_TIMEOUT=soon");
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.status().message(), HasSubstr("NPUSHMEM_BOOTSTRAP_TIMEOUT"));
}

}  // namespace

}  // namespace npushmem::run
