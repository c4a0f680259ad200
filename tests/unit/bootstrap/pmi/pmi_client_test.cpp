// SPDX-License-Identifier: BSD-3-Clause
// The client against launchers that do well, refuse, talk garbage, fall silent and vanish.
#include "bootstrap/pmi/pmi_client.hpp"

#include <gmock/gmock.h>

#include <random>

#include "tests/fakes/fake_os.hpp"
#include "tests/unit/bootstrap/launcher/scripted_launcher.hpp"

namespace npushmem::pmi {
namespace {

using launcher::Deadline;
using launcher::ScriptedLauncher;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

FakeEnvironment environment_of(const ScriptedLauncher& launcher, const std::string& rank = "1",
                               const std::string& size = "2") {
    return {{"PMI_FD", launcher.fd()}, {"PMI_RANK", rank}, {"PMI_SIZE", size}};
}

// Answers as a launcher does; `answers` replaces what it says to a command.
std::function<void(int)> polite(std::map<std::string, std::string> answers = {}) {
    const std::map<std::string, std::string> usual{
        {"init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
        {"get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"},
        {"get_my_kvsname", "cmd=my_kvsname kvsname=space_7\n"},
        {"put", "cmd=put_result rc=0 msg=success\n"},
        {"barrier_in", "cmd=barrier_out\n"},
        {"get", "cmd=get_result rc=0 msg=all went well value=i0123\n"},
        {"finalize", "cmd=finalize_ack\n"}};
    answers.insert(usual.begin(), usual.end());
    return [answers](int fd) {
        for (std::string line = ScriptedLauncher::receive_until(fd, '\n'); !line.empty();
             line = ScriptedLauncher::receive_until(fd, '\n')) {
            const auto request = Message::parse(line);
            const auto answer = answers.find(request.ok() ? request.value().command() : "");
            if (answer == answers.end() || answer->second.empty()) return;
            ScriptedLauncher::send_text(fd, answer->second);
        }
    };
}

TEST(PmiClient, LearnsItsRankAndBroadcastsAMessage) {
    const ScriptedLauncher launcher(polite());
    auto client = PmiClient::begin(environment_of(launcher), soon());
    ASSERT_TRUE(client.ok()) << client.status().message();
    EXPECT_EQ(client.value().rank(), 1);
    EXPECT_EQ(client.value().nranks(), 2);
    const auto message = client.value().broadcast("", soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message.value(), "i0123");
    client.value().end();
}

TEST(PmiClient, ReportsMissingAndMalformedVariables) {
    const auto begin = [](const FakeEnvironment& environment) {
        return PmiClient::begin(environment, soon()).status().message();
    };
    EXPECT_THAT(begin({}), HasSubstr("neither PMI_FD nor PMI_PORT is set"));
    EXPECT_THAT(begin({{"PMI_FD", "3"}}), HasSubstr("PMI_RANK is not set"));
    EXPECT_THAT(begin({{"PMI_FD", "three"}}), HasSubstr("PMI_FD='three'"));
    EXPECT_THAT(begin({{"PMI_FD", "3"}, {"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK='-1'"));
    EXPECT_THAT(begin({{"PMI_PORT", "127.0.0.1:1"}}), HasSubstr("127.0.0.1:1"));
}

TEST(PmiClient, RefusesARankOutsideTheJob) {
    const ScriptedLauncher launcher(polite());
    EXPECT_THAT(PmiClient::begin(environment_of(launcher, "2", "2"), soon()).status().message(),
                HasSubstr("rank 2 of 2"));
}

TEST(PmiClient, ReportsProtocolErrorsOfTheLauncher) {
    const std::vector<std::pair<std::map<std::string, std::string>, std::string>> wrong{
        {{{"init", "cmd=response_to_init rc=-1 msg=too_old\n"}}, "rc=-1 too_old"},
        {{{"init", "cmd=maxes\n"}}, "answered 'maxes' instead of 'response_to_init'"},
        {{{"init", "I am a teapot\n"}}, "not a PMI message"},
        {{{"init", "\n"}}, "not a PMI message"},
        {{{"get_maxes", "cmd=maxes vallen_max=32\n"}}, "at most 32 characters"},
        {{{"get_maxes", "cmd=maxes\n"}}, "lacks vallen_max"},
        {{{"get_maxes", "cmd=maxes vallen_max=lots\n"}}, "vallen_max='lots'"},
        {{{"get_my_kvsname", ""}}, "has closed its connection"},
        {{{"init", std::string(70000, 'x')}}, "a line of more than"},
    };
    for (const auto& [answers, text] : wrong) {
        const ScriptedLauncher launcher(polite(answers));
        EXPECT_THAT(PmiClient::begin(environment_of(launcher), soon()).status().message(), HasSubstr(text));
    }
}

TEST(PmiClient, ASilentLauncherCausesATimeoutWithoutAnotherRequest) {
    const ScriptedLauncher launcher(polite({{"barrier_in", "\r"}}));  // no end of line: no answer
    auto client = PmiClient::begin(environment_of(launcher), soon());
    ASSERT_TRUE(client.ok()) << client.status().message();
    const Status late = client.value().broadcast("", Deadline::after(std::chrono::milliseconds(30))).status();
    EXPECT_EQ(late.code(), Code::timeout);
    EXPECT_THAT(late.message(), HasSubstr("has every rank of the job called"));
    EXPECT_THAT(client.value().broadcast("", soon()).status().message(), HasSubstr("the launcher failed before"));
}

TEST(PmiClient, GarbageEndsInAnError) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        std::string bytes(random() % 200, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        const ScriptedLauncher launcher([&](int fd) { ScriptedLauncher::send_text(fd, bytes); });
        EXPECT_FALSE(PmiClient::begin(environment_of(launcher), soon()).ok());
    }
}

}  // namespace
}  // namespace npushmem::pmi
