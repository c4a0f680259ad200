// SPDX-License-Identifier: BSD-3-Clause
// Malformed variables, missing files and exhausted memory: the message, the functions that still work, and no
// leftovers.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "npushmem/plugin/abi.h"
#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/plain_world.hpp"
#include "tests/integration/api/private_mounts.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Steps = std::vector<std::string>;

class BadInput : public ::testing::Test {
protected:
    ~BadInput() override { EXPECT_EQ(leftovers_.found(), ""); }

    // The text that two PEs under the launcher print when init fails.
    static std::string failure_of_init(const Steps& environment, Steps options = {}) {
        run::JobSettings settings;
        settings.with_bootstrap = true;
        settings.environment = environment;
        options.insert(options.begin(), {"-n", "2"});
        options.insert(options.end(), {API_TEST_FOLDER "/api_scenario", "init", "print"});
        run::JobUnderTest job(options, settings);
        EXPECT_EQ(job.end(), 0) << job.errors();
        return job.output();
    }

private:
    Leftovers leftovers_;
};

struct Wrong {
    const char* variable;
    int code;
    std::vector<const char*> words;
};

TEST_F(BadInput, VariablesThatAreWrong) {
    const Wrong all[] = {
        {"NPUSHMEM_TRANSPORTS=self,p2pp", NPUSHMEM_E_PLUGIN_MISSING, {"'p2pp'", "'p2p'"}},
        {"NPUSHMEM_TRANSPORTS=self,fault(p2p", NPUSHMEM_E_CONFIG, {"NPUSHMEM_TRANSPORTS", "fault(p2p"}},
        {"NPUSHMEM_TRANSPORTS=self,p2p(self)", NPUSHMEM_E_CONFIG, {"p2p"}},
        {"NPUSHMEM_REMOTE_TRANSPORT=verbz", NPUSHMEM_E_PLUGIN_MISSING, {"NPUSHMEM_REMOTE_TRANSPORT: ", "verbz"}},
        {"NPUSHMEM_REMOTE_TRANSPORT=ucx(", NPUSHMEM_E_CONFIG, {"NPUSHMEM_REMOTE_TRANSPORT: ", "ucx("}},
        {"NPUSHMEM_REMOTE_TRANSPORT=p2p", NPUSHMEM_E_CONFIG, {"'p2p' is listed twice, first in NPUSHMEM_TRANSPORTS"}},
        {"NPUSHMEM_BOOTSTRAP=uidd", NPUSHMEM_E_PLUGIN_MISSING, {"uidd", "uid"}},
        {"NPUSHMEM_SYMMETRIC_SIZE=12Q", NPUSHMEM_E_CONFIG, {"NPUSHMEM_SYMMETRIC_SIZE='12Q'", "accepted"}},
        {"NPUSHMEM_SYMMETRIC_SIZE=", NPUSHMEM_E_CONFIG, {"NPUSHMEM_SYMMETRIC_SIZE=''"}},
        {"NPUSHMEM_SYMMETRIC_SIZE=-1G", NPUSHMEM_E_CONFIG, {"NPUSHMEM_SYMMETRIC_SIZE='-1G'"}},
        {"NPUSHMEM_TIMEOUT=soon", NPUSHMEM_E_CONFIG, {"NPUSHMEM_TIMEOUT='soon'", "duration"}},
        {"NPUSHMEM_DISABLE_P2P=maybe", NPUSHMEM_E_CONFIG, {"NPUSHMEM_DISABLE_P2P='maybe'", "bool"}},
        {"NPUSHMEM_DEBUG=loud", NPUSHMEM_E_CONFIG, {"NPUSHMEM_DEBUG='loud'", "warn"}},
        {"NPUSHMEM_DEBUG_FILE=/nonexistent/log", NPUSHMEM_E_CONFIG, {"NPUSHMEM_DEBUG_FILE", "/nonexistent/log"}},
        {"NPUSHMEM_ON_ERROR=panic", NPUSHMEM_E_CONFIG, {"NPUSHMEM_ON_ERROR='panic'", "exit"}},
        {"NPUSHMEM_BARRIER_ALGO=nosuch", NPUSHMEM_E_CONFIG, {"NPUSHMEM_BARRIER_ALGO", "nosuch"}},
        {"NPUSHMEM_UNIQUEID=xyz", NPUSHMEM_E_ARGUMENT, {"NPUSHMEM_UNIQUEID"}},
    };
    for (const Wrong& wrong : all) {
        SCOPED_TRACE(wrong.variable);
        WorldSettings settings;
        settings.environment = {wrong.variable};
        PlainWorld world(1, {"init", "print"}, settings);
        world.expect_success();
        EXPECT_THAT(world.output(0), HasSubstr(std::to_string(wrong.code)));
        for (const char* word : wrong.words) EXPECT_THAT(world.output(0), HasSubstr(word));
    }
}

TEST_F(BadInput, PluginsVariablesThatAreWrong) {
    const Wrong all[] = {
        {"NPUSHMEM_FAULT_SEED=x", NPUSHMEM_E_CONFIG, {"NPUSHMEM_FAULT_SEED='x'"}},
        {"NPUSHMEM_FAULT_AGAIN=95", NPUSHMEM_E_CONFIG, {"NPUSHMEM_FAULT_AGAIN", "90"}},
        {"NPUSHMEM_FAULT_FAIL=putt:1:timeout", NPUSHMEM_E_CONFIG, {"NPUSHMEM_FAULT_FAIL", "putt"}},
        {"NPUSHMEM_BOOTSTRAP_TIMEOUT=never", NPUSHMEM_E_CONFIG, {"NPUSHMEM_BOOTSTRAP_TIMEOUT='never'"}},
        {"NPUSHMEM_BOOTSTRAP_UID_SOCK_FAMILY=AF_IPX", NPUSHMEM_E_CONFIG, {"AF_IPX", "AF_INET6"}},
    };
    for (const Wrong& wrong : all) {
        SCOPED_TRACE(wrong.variable);
        WorldSettings settings;
        settings.environment = {"NPUSHMEM_TRANSPORTS=self,fault(p2p)", wrong.variable};
        PlainWorld world(1, {"init", "print"}, settings);
        world.expect_success();
        EXPECT_THAT(world.output(0), HasSubstr(std::to_string(wrong.code)));
        for (const char* word : wrong.words) EXPECT_THAT(world.output(0), HasSubstr(word));
    }
}

TEST_F(BadInput, AVariableThatDoesNotExistIsOneWarning) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_SYMETRIC_SIZE=1G"};
    run::JobUnderTest job({"-n", "3", API_TEST_FOLDER "/api_scenario", "init", "ring", "finalize", "code=0"}, settings);
    EXPECT_EQ(job.end(), 0);
    const std::string errors = job.errors();
    const auto first = errors.find("NPUSHMEM_SYMETRIC_SIZE");
    ASSERT_NE(first, std::string::npos) << errors;
    EXPECT_THAT(errors, HasSubstr("did you mean NPUSHMEM_SYMMETRIC_SIZE?"));
    EXPECT_EQ(errors.find("NPUSHMEM_SYMETRIC_SIZE", first + 1), std::string::npos) << errors;
}

TEST_F(BadInput, APluginFolderThatDoesNotExistIsOneWarning) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_PLUGIN_PATH=/nonexistent"};
    run::JobUnderTest job({"-n", "3", API_TEST_FOLDER "/api_scenario", "init", "ring", "finalize", "code=0"}, settings);
    EXPECT_EQ(job.end(), 0);
    const std::string errors = job.errors();
    const auto first = errors.find("NPUSHMEM_PLUGIN_PATH names '/nonexistent'");
    ASSERT_NE(first, std::string::npos) << errors;
    EXPECT_EQ(errors.find("/nonexistent", first + 30), std::string::npos) << errors;
}

TEST_F(BadInput, AnInterfaceThatDoesNotExist) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=nosuch0"};
    PlainWorld world(1, {"id", "print"}, settings);
    world.expect_success();
    EXPECT_THAT(world.output(0), AllOf(HasSubstr("nosuch0"), HasSubstr("lo")));
}

TEST_F(BadInput, PesThatNoTransportReaches) {
    const std::string none = "NPUSHMEM_REMOTE_TRANSPORT=none";
    for (const std::string& output :
         {failure_of_init({none}, {"--nodes", "2"}), failure_of_init({"NPUSHMEM_DISABLE_P2P=1"})}) {
        EXPECT_THAT(output, AllOf(HasSubstr(std::to_string(NPUSHMEM_E_UNREACHABLE)), HasSubstr("cannot be reached"),
                                  HasSubstr("self: "), HasSubstr("NPUSHMEM_REMOTE_TRANSPORT")));
    }
    EXPECT_THAT(failure_of_init({none}, {"--nodes", "2"}), HasSubstr("p2p: "));
    // Without a word about what lies between the hosts, everything that could is tried.
    EXPECT_THAT(failure_of_init({"NPUSHMEM_REMOTE_ORDER=nosuch,nosuch2"}, {"--nodes", "2"}),
                AllOf(HasSubstr("auto tried nosuch: "), HasSubstr("; not nosuch2: "), HasSubstr("cannot be reached")));
    EXPECT_THAT(failure_of_init({"NPUSHMEM_DISABLE_P2P=1"}), Not(HasSubstr("p2p: ")));
}

TEST_F(BadInput, DisablingP2pLeavesAJobOfOne) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_DISABLE_P2P=1"};
    PlainWorld(1, {"init", "ring", "finalize", "code=0"}, settings).expect_success();
}

std::uint64_t memory_of_machine() {
    return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// A heap larger than the memory is allowed. Only an object that does not fit fails, and the process continues.
TEST_F(BadInput, AnObjectLargerThanTheMachinesMemory) {
    const std::uint64_t memory = memory_of_machine();
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_SYMMETRIC_SIZE=" + std::to_string(4 * memory)};
    const std::string wanted = std::to_string(2 * memory);
    PlainWorld world(2,
                     {"id", "attr", "ring", "malloc=" + wanted, "print", "calloc=" + wanted, "print", "malloc=1048576",
                      "code=0", "free", "ring", "finalize", "code=0"},
                     settings);
    world.expect_success();
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_THAT(world.output(rank),
                    AllOf(HasSubstr(std::to_string(NPUSHMEM_E_MEMORY)), HasSubstr("out of memory"),
                          HasSubstr("available"), HasSubstr("npushmem_malloc"), HasSubstr("npushmem_calloc")));
}

TEST_F(BadInput, AHeapLargerThanTheAddressSpace) {
    for (const char* size : {"1024T", "18446744073709551615", "17179869183G"}) {
        SCOPED_TRACE(size);
        WorldSettings settings;
        settings.environment = {"NPUSHMEM_SYMMETRIC_SIZE=" + std::string(size)};
        PlainWorld world(1, {"init", "print"}, settings);
        world.expect_success();
        EXPECT_THAT(world.output(0),
                    AllOf(HasSubstr("NPUSHMEM_SYMMETRIC_SIZE"), HasSubstr("address space"), HasSubstr("-")));
    }
}

TEST_F(BadInput, LimitsOfTheProcess) {
    const std::pair<decltype(RLIMIT_AS), const char*> limits[] = {{RLIMIT_AS, "address space limit"},
                                                                  {RLIMIT_FSIZE, "ulimit -f"}};
    for (const auto& [limit, words] : limits) {
        SCOPED_TRACE(words);
        WorldSettings settings;
        settings.environment = {"NPUSHMEM_SYMMETRIC_SIZE=4G"};
        settings.before_exec = [which = limit] {
            const rlimit bound{2ULL << 30, 2ULL << 30};
            return ::setrlimit(which, &bound) == 0;
        };
        PlainWorld world(2, {"id", "attr", "print"}, settings);
        world.expect_success();
        EXPECT_THAT(world.output(0) + world.output(1),
                    AllOf(HasSubstr(words), HasSubstr("2 GiB"), HasSubstr("start-up failed")));
    }
}

// The other PEs may depend on the call, so its process ends.
TEST_F(BadInput, ACallWithoutPrivateMemoryEndsTheProcess) {
    for (const std::string call : {"npushmem_team_split_strided",
                                   "npushmem_team_split_2d",
                                   "npushmem_team_destroy",
                                   "npushmemx_team_set_barrier",
                                   "npushmem_ctx_create",
                                   "npushmem_team_create_ctx",
                                   "npushmem_ctx_destroy",
                                   "npushmemx_buffer_register_symmetric",
                                   "npushmemx_buffer_unregister_symmetric",
                                   "npushmemx_buffer_register",
                                   "npushmemx_buffer_unregister",
                                   "npushmem_malloc",
                                   "npushmem_realloc",
                                   "npushmem_addr_accessible",
                                   "npushmem_signal_fetch",
                                   "npushmemx_get_route",
                                   "npushmemx_get_barrier",
                                   "npushmemx_team_get_statistics",
                                   "npushmemx_stream_create",
                                   "npushmemx_stream_destroy",
                                   "npushmemx_signal_wait_until_on_stream",
                                   "npushmemx_long_wait_until_on_stream",
                                   "npushmem_align",
                                   "npushmem_ptr",
                                   "npushmem_ctx_session_start",
                                   "npushmem_ctx_session_stop",
                                   "npushmem_ctx_get_team",
                                   "npushmem_team_get_config",
                                   "npushmemx_team_get_uniqueid",
                                   "npushmemx_team_init",
                                   "npushmemx_heap_info",
                                   "npushmem_set_lock",
                                   "npushmem_clear_lock"}) {
        SCOPED_TRACE(call);
        run::JobSettings settings;
        settings.with_bootstrap = true;
        run::JobUnderTest job({"-n", "1", API_TEST_FOLDER "/api_without_memory", call}, settings);
        EXPECT_EQ(job.end(), 1);
        EXPECT_THAT(job.errors(), HasSubstr("npushmem: " + call + ": this process cannot allocate private memory"));
    }
}

TEST_F(BadInput, AHeapFolderThatDoesNotExist) {
    const std::string output = failure_of_init({"NPUSHMEM_HEAP_DIR=/nonexistent"});
    EXPECT_THAT(output, AllOf(HasSubstr("/nonexistent"), HasSubstr("No such file")));
}

TEST_F(BadInput, AFullHeapFolder) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("api_test_full_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    {
        const PrivateMounts mounts({{folder.string(), "size=6m"}});
        if (!mounts.why_not().empty()) {
            std::filesystem::remove(folder);
            GTEST_SKIP() << mounts.why_not();
        }
        WorldSettings settings;
        settings.environment = {"NPUSHMEM_HEAP_DIR=" + folder.string(), "NPUSHMEM_SYMMETRIC_SIZE=64M"};
        settings.before_exec = [&] { return mounts.enter(); };
        PlainWorld world(2,
                         {"id", "attr", "ring", "malloc=33554432", "print", "malloc=65536", "code=0", "free", "ring",
                          "finalize", "code=0"},
                         settings);
        world.expect_success();
        for (int rank = 0; rank < 2; ++rank)
            EXPECT_THAT(world.output(rank), AllOf(HasSubstr(std::to_string(NPUSHMEM_E_MEMORY)), HasSubstr("32 MiB"),
                                                  HasSubstr("of 6 MiB free")));
        EXPECT_TRUE(std::filesystem::is_empty(mounts.seen_from_outside(folder.string())));

        const std::string filler = mounts.seen_from_outside(folder.string()) + "/filler";
        std::ofstream(filler) << std::string((6U << 20) - 8192, 'x');
        PlainWorld full(2, {"id", "attr", "print"}, settings);
        full.expect_success();
        EXPECT_THAT(full.output(0) + full.output(1), AllOf(HasSubstr("start-up failed"), HasSubstr("of 6 MiB free")));
        EXPECT_TRUE(std::filesystem::remove(filler));
        EXPECT_TRUE(std::filesystem::is_empty(mounts.seen_from_outside(folder.string())));
    }
    std::filesystem::remove(folder);
}

// In the format of the step "names".
std::string names_in(const PrivateMounts& mounts, const std::string& folder) {
    std::string out;
    for (const auto& entry : std::filesystem::directory_iterator(mounts.seen_from_outside(folder)))
        out += folder + "/" + entry.path().filename().string() + "\n";
    return out;
}

// Neither while a job runs nor afterwards does it have a name in the folders for temporary things. There is the build's
// own folder at most, when it is below one of them.
TEST_F(BadInput, NothingIsNamedInTheFileSystem) {
    const PrivateMounts mounts({{"/tmp", "size=64m"}, {"/dev/shm", "size=64m"}}, API_TEST_BUILD);
    if (!mounts.why_not().empty()) GTEST_SKIP() << mounts.why_not();
    const std::string before = names_in(mounts, "/tmp") + names_in(mounts, "/dev/shm");
    WorldSettings settings;
    settings.before_exec = [&] { return mounts.enter(); };
    PlainWorld world(
        3, {"id", "attr", "ring", "names=/tmp", "names=/dev/shm", "barrier", "report=up", "1:pause", "barrier"},
        settings);
    world.wait_for_reports(3);
    world.kill(1, SIGKILL);
    for (const int rank : {0, 2}) EXPECT_EQ(world.status(rank), 0);
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.output(rank), before);
    EXPECT_EQ(names_in(mounts, "/tmp") + names_in(mounts, "/dev/shm"), before);
}

// Like a checkout below /tmp.
TEST_F(BadInput, ProgramsBelowACoveredFolderRun) {
    const std::string above = std::filesystem::path(API_TEST_BUILD).parent_path().string();
    const PrivateMounts mounts({{above, "size=64m"}}, API_TEST_BUILD);
    if (!mounts.why_not().empty()) GTEST_SKIP() << mounts.why_not();
    const std::string only = std::filesystem::path(API_TEST_BUILD).filename().string();
    EXPECT_EQ(names_in(mounts, above), above + "/" + only + "\n");
    WorldSettings settings;
    settings.before_exec = [&] { return mounts.enter(); };
    PlainWorld(2, {"id", "attr", "ring", "finalize", "code=0"}, settings).expect_success();
}

}  // namespace
}  // namespace npushmem::api_test
