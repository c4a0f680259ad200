// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi2/pmi2_client.hpp"

#include <gmock/gmock.h>

#include <random>

#include "tests/fakes/fake_os.hpp"
#include "tests/unit/bootstrap/launcher/scripted_launcher.hpp"

namespace npushmem::pmi2 {
namespace {

using launcher::Deadline;
using launcher::ScriptedLauncher;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

FakeEnvironment environment_of(const ScriptedLauncher& launcher) {
    return {{"PMI_FD", launcher.fd()}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
}

std::string hear_message(int fd) {
    std::string digits;
    for (char c = 0; digits.size() < length_digits && ::read(fd, &c, 1) == 1;) digits.push_back(c);
    const auto length = Message::length(digits);
    std::string body;
    for (char c = 0; length.ok() && body.size() < length.value() && ::read(fd, &c, 1) == 1;) body.push_back(c);
    return body;
}

// Agrees to version 2, then answers every command with `words`, or with success.
std::function<void(int)> polite(std::map<std::string, Message::Words> words = {}) {
    words.insert({"kvs-get", {{"flag", "TRUE"}, {"value", "i;0;"}, {"rc", "0"}}});
    return [words](int fd) {
        (void)ScriptedLauncher::receive_until(fd, '\n');
        ScriptedLauncher::send_text(fd, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
        for (std::string body = hear_message(fd); !body.empty(); body = hear_message(fd)) {
            const std::string command = Message::parse(body).value().command();
            const auto given = words.find(command);
            ScriptedLauncher::send_text(
                fd, Message::encode(command + "-response",
                                    given != words.end() ? given->second : Message::Words{{"rc", "0"}}));
        }
    };
}

TEST(Pmi2Message, IsEncodedWithItsLengthAndDoubledSemicolons) {
    const std::string wire = Message::encode("kvs-put", {{"key", "a;b"}, {"value", ";"}});
    EXPECT_EQ(wire, "    30cmd=kvs-put;key=a;;b;value=;;;");
    EXPECT_EQ(Message::length(wire.substr(0, length_digits)).value(), wire.size() - length_digits);
    const auto back = Message::parse(wire.substr(length_digits));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value().command(), "kvs-put");
    EXPECT_EQ(back.value().find("key"), "a;b");
    EXPECT_FALSE(Message::length("  -12 ").ok());
    EXPECT_FALSE(Message::length("999999").ok());
    EXPECT_FALSE(Message::length("ninety").ok());
    EXPECT_FALSE(Message::parse("no message").ok());
}

TEST(Pmi2Client, LearnsItsRankAndBroadcastsAMessage) {
    const ScriptedLauncher launcher(polite());
    auto client = Pmi2Client::begin(environment_of(launcher), soon());
    ASSERT_TRUE(client.ok()) << client.status().message();
    EXPECT_EQ(client.value().rank(), 1);
    EXPECT_EQ(client.value().broadcast("", soon()).value(), "i;0;");
    client.value().end();
}

TEST(Pmi2Client, ReportsProtocolErrorsOfTheLauncher) {
    const ScriptedLauncher old([](int fd) {
        (void)ScriptedLauncher::receive_until(fd, '\n');
        ScriptedLauncher::send_text(fd, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    });
    EXPECT_THAT(Pmi2Client::begin(environment_of(old), soon()).status().message(), HasSubstr("does not support PMI-2"));
    const ScriptedLauncher strict(polite({{"fullinit", {{"rc", "14"}, {"errmsg", "no room"}}}}));
    EXPECT_THAT(Pmi2Client::begin(environment_of(strict), soon()).status().message(), HasSubstr("rc=14 no room"));
    const ScriptedLauncher closed([](int) {});
    EXPECT_THAT(Pmi2Client::begin(environment_of(closed), soon()).status().message(), HasSubstr("has closed"));
    EXPECT_THAT(Pmi2Client::begin(FakeEnvironment{}, soon()).status().message(), HasSubstr("PMI_FD is not set"));
}

TEST(Pmi2Client, GarbageEndsInAnError) {
    std::mt19937 random(11);
    for (int round = 0; round < 300; ++round) {
        std::string bytes = round % 2 == 0 ? "cmd=response_to_init pmi_version=2 rc=0\n" : "";
        for (auto left = random() % 100; left > 0; --left) bytes.push_back(static_cast<char>(random()));
        const ScriptedLauncher launcher([&](int fd) { ScriptedLauncher::send_text(fd, bytes); });
        EXPECT_FALSE(Pmi2Client::begin(environment_of(launcher), soon()).ok());
    }
}

}  // namespace
}  // namespace npushmem::pmi2
