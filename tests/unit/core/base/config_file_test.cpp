// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/config_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/config.hpp"
#include "core/base/poller.hpp"
#include "tests/fakes/fake_os.hpp"
#include "tests/fakes/sleeping_thread.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<Config> config_of(const std::string& content, FakeEnvironment environment) {
    return Config::read(environment, [content](const std::string&) { return Result<std::string>(content); });
}

const EffectiveValue& row_of(const Config& config, const std::string& name) {
    for (const auto& row : config.effective())
        if (row.name == name) return row;
    ADD_FAILURE() << name;
    return config.effective().front();
}

TEST(ConfigFile, HasAVariableOnEachLine) {
    const auto values = parse_config_file(
        "# a comment\n\n NPUSHMEM_TIMEOUT = 5s \r\nNPUSHMEM_HCA_LIST==a#b\nNPUSHMEM_DEBUG_FILE=\nNPUSHMEM_X_2=last",
        "f");
    ASSERT_TRUE(values.ok()) << values.status().message();
    ASSERT_EQ(values.value().size(), 4U);
    EXPECT_EQ(values.value().at("NPUSHMEM_TIMEOUT").text, "5s");
    EXPECT_EQ(values.value().at("NPUSHMEM_TIMEOUT").place, "f:3");
    EXPECT_EQ(values.value().at("NPUSHMEM_HCA_LIST").text, "=a#b");
    EXPECT_EQ(values.value().at("NPUSHMEM_DEBUG_FILE").text, "");
    EXPECT_EQ(values.value().at("NPUSHMEM_X_2").place, "f:6");
    EXPECT_TRUE(parse_config_file("", "f").value().empty());
}

TEST(ConfigFile, NoValueEndsWithACarriageReturn) {
    for (const char* line : {"NPUSHMEM_TIMEOUT=5s\r\n", "NPUSHMEM_TIMEOUT=5s\r\r  \r\n", "NPUSHMEM_TIMEOUT=5s \r \t"})
        EXPECT_EQ(parse_config_file(line, "f").value().at("NPUSHMEM_TIMEOUT").text, "5s");
}

struct WrongLine {
    const char* content;
    const char* complaint;
};

class WrongLines : public ::testing::TestWithParam<WrongLine> {};

TEST_P(WrongLines, AreReportedWithTheirPlace) {
    const Status status = parse_config_file(GetParam().content, "job.conf").status();
    EXPECT_EQ(status.code(), Code::config);
    EXPECT_THAT(status.message(), AllOf(StartsWith("job.conf:2: "), HasSubstr(GetParam().complaint)));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongLines,
    ::testing::Values(WrongLine{"\nNPUSHMEM_TIMEOUT", "'NPUSHMEM_TIMEOUT': expected NPUSHMEM_<name>=<value>"},
                      WrongLine{"\nTIMEOUT=5s", "'TIMEOUT=5s': expected NPUSHMEM_"},
                      WrongLine{"\nNPUSHMEM_=5s", "expected NPUSHMEM_"},
                      WrongLine{"\nNPUSHMEM_timeout=5s", "capital letters"},
                      WrongLine{"\nexport NPUSHMEM_TIMEOUT=5s", "expected NPUSHMEM_"},
                      WrongLine{"\nNPUSHMEM_CONFIG_FILE=other", "cannot name another one"},
                      WrongLine{"NPUSHMEM_PE=1\nNPUSHMEM_PE=2", "NPUSHMEM_PE is set already at job.conf:1"}));

TEST(ConfigFile, SetsWhatTheEnvironmentLeavesOut) {
    const auto config = config_of(
        "NPUSHMEM_TIMEOUT=5s\nNPUSHMEM_DEBUG=info\nNPUSHMEM_SYMMETRIC_SIZE=8M",
        {{"NPUSHMEM_CONFIG_FILE", " job.conf "}, {"NPUSHMEM_DEBUG", "error"}, {"SHMEM_SYMMETRIC_SIZE", "4M"}});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().settings().timeout, std::chrono::seconds(5));
    EXPECT_EQ(row_of(config.value(), "TIMEOUT").place, "job.conf:1");
    EXPECT_FALSE(row_of(config.value(), "TIMEOUT").from_environment);
    EXPECT_FALSE(row_of(config.value(), "TIMEOUT").is_default());
    EXPECT_EQ(config.value().settings().debug, "error");
    EXPECT_EQ(row_of(config.value(), "DEBUG").place, "");
    // A variable of the standard is in the environment too.
    EXPECT_EQ(config.value().settings().symmetric_size.value, 4ULL << 20);
    EXPECT_TRUE(row_of(config.value(), "SYMMETRIC_SIZE").from_environment);
    EXPECT_TRUE(row_of(config.value(), "PE").is_default());
    EXPECT_EQ(config.value().given("NPUSHMEM_TIMEOUT"), "5s");
    EXPECT_EQ(config.value().given("NPUSHMEM_DEBUG"), "error");
    EXPECT_EQ(config.value().given("NPUSHMEM_PE"), std::nullopt);
}

TEST(ConfigFile, SetsVariablesOfPlugins) {
    auto config = config_of("NPUSHMEM_FAKE_DELAY=3us\nNPUSHMEM_FAKE_SEED=x", {{"NPUSHMEM_CONFIG_FILE", "f"}});
    ASSERT_TRUE(config.ok());
    const npushmem_config_row delay[] = {{"FAKE_DELAY", "1us", "duration", "a delay"}};
    const npushmem_config_row seed[] = {{"FAKE_SEED", "1", "uint", "a seed"}};
    EXPECT_TRUE(config.value().declare("fake", delay).ok());
    EXPECT_STREQ(config.value().value("FAKE_DELAY"), "3us");
    EXPECT_EQ(row_of(config.value(), "FAKE_DELAY").place, "f:1");
    EXPECT_THAT(config.value().declare("fake", seed).message(), StartsWith("f:2: NPUSHMEM_FAKE_SEED='x'"));
}

TEST(ConfigFile, ReportsMalformedValuesAndUnknownNamesWithTheirPlace) {
    const Status status = config_of("\nNPUSHMEM_TIMEOUT=soon", {{"NPUSHMEM_CONFIG_FILE", "f"}}).status();
    EXPECT_EQ(status.code(), Code::config);
    EXPECT_THAT(status.message(), StartsWith("f:2: NPUSHMEM_TIMEOUT='soon': "));
    // The environment overrules the malformed value.
    EXPECT_TRUE(config_of("NPUSHMEM_TIMEOUT=soon", {{"NPUSHMEM_CONFIG_FILE", "f"}, {"NPUSHMEM_TIMEOUT", "1"}}).ok());
    const auto config = config_of("NPUSHMEM_SYMETRIC_SIZE=1G\nNPUSHMEM_ZZZZ=1",
                                  {{"NPUSHMEM_CONFIG_FILE", "f"}, {"NPUSHMEM_ZZZZ", "2"}});
    ASSERT_TRUE(config.ok());
    EXPECT_THAT(
        config.value().unknown_variables(),
        ElementsAre("f:1: unknown variable NPUSHMEM_SYMETRIC_SIZE is ignored; did you mean NPUSHMEM_SYMMETRIC_SIZE?",
                    "unknown variable NPUSHMEM_ZZZZ is ignored"));
}

TEST(ConfigFile, TellsWhetherConfigurationsAreGivenAlike) {
    const auto given = [](const std::string& in_file, const std::string& of_plugin, const std::string& standard) {
        auto config = config_of(
            "NPUSHMEM_PE=" + in_file,
            {{"NPUSHMEM_CONFIG_FILE", "f"}, {"NPUSHMEM_OF_A_PLUGIN", of_plugin}, {"SHMEM_SYMMETRIC_SIZE", standard}});
        EXPECT_TRUE(config.ok()) << config.status().message();
        return std::move(config).value();
    };
    const Config one = given("3", "1", "1M");
    EXPECT_TRUE(one.is_given_alike(given("3", "1", "1M")));
    EXPECT_FALSE(one.is_given_alike(given("4", "1", "1M")));
    EXPECT_FALSE(one.is_given_alike(given("3", "2", "1M")));
    EXPECT_FALSE(one.is_given_alike(given("3", "1", "2M")));
}

TEST(ConfigFile, MustBeReadable) {
    for (const std::string path : {"/no/such/file", "/"}) {
        const FakeEnvironment environment{{"NPUSHMEM_CONFIG_FILE", path}};
        const Status status = Config::read(environment).status();
        EXPECT_EQ(status.code(), Code::config);
        EXPECT_THAT(status.message(), HasSubstr("NPUSHMEM_CONFIG_FILE='" + path + "': cannot read the file: "));
        EXPECT_EQ(given_variable("NPUSHMEM_ON_ERROR", environment), std::nullopt);
    }
    const std::string path = ::testing::TempDir() + "npushmem-config-file";
    std::ofstream(path) << "NPUSHMEM_ON_ERROR=exit\n" << std::string(10000, '#') << "\nNPUSHMEM_PE=3";
    const FakeEnvironment environment{{"NPUSHMEM_CONFIG_FILE", path}, {"NPUSHMEM_NPES", "4"}};
    const auto config = Config::read(environment);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().settings().pe, 3);
    EXPECT_EQ(given_variable("NPUSHMEM_ON_ERROR", environment), "exit");
    EXPECT_EQ(given_variable("NPUSHMEM_NPES", environment), "4");
    (void)std::remove(path.c_str());
}

std::atomic<int> signals_handled{0};

// A signal comes while the reader waits for data.
TEST(ConfigFile, IsReadInSpiteOfSignals) {
    struct sigaction counting {};
    counting.sa_handler = [](int) { ++signals_handled; };  // without SA_RESTART
    struct sigaction before {};
    ASSERT_EQ(::sigaction(SIGUSR1, &counting, &before), 0);
    const std::string path = ::testing::TempDir() + "npushmem-config-pipe-" + std::to_string(::getpid());
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    FileDescriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(writer.valid());
    std::atomic<pid_t> reader_id{0};
    Result<std::string> content = Status{};
    std::thread reader([&] {
        reader_id = static_cast<pid_t>(::syscall(SYS_gettid));
        content = read_content(path);
    });
    while (reader_id == 0 || !is_asleep(reader_id)) std::this_thread::yield();
    EXPECT_EQ(::pthread_kill(reader.native_handle(), SIGUSR1), 0);
    while (signals_handled == 0) std::this_thread::yield();
    EXPECT_EQ(::write(writer.get(), "NPUSHMEM_PE=3", 13), 13);
    writer.reset();
    reader.join();
    ASSERT_TRUE(content.ok()) << content.status().message();
    EXPECT_EQ(content.value(), "NPUSHMEM_PE=3");
    (void)std::remove(path.c_str());
    (void)::sigaction(SIGUSR1, &before, nullptr);
}

// As with secure_getenv: the caller does not choose the file.
TEST(ConfigFile, IsIgnoredByProgramsThatHaveGainedPrivileges) {
    ASSERT_EQ(::setenv("NPUSHMEM_CONFIG_FILE", "/no/such/file", 1), 0);
    EXPECT_FALSE(Config::read(ProcessEnvironment(false)).ok());
    EXPECT_TRUE(Config::read(ProcessEnvironment(true)).ok());
    ::unsetenv("NPUSHMEM_CONFIG_FILE");
}

}  // namespace
}  // namespace npushmem
