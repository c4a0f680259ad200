// SPDX-License-Identifier: BSD-3-Clause
// Messages of PMI launchers, alone and as whole conversations.
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/pmi/pmi_client.hpp"
#include "bootstrap/pmi2/pmi2_client.hpp"
#include "tests/fakes/fake_os.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

// The launcher's end of a connection: everything that it will send has arrived, and its stream has ended.
class SilentLauncher {
public:
    explicit SilentLauncher(Input answers) {
        require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) == 0, "no socket pair");
        require(::write(ends_[1], answers.data(), answers.size()) == static_cast<ssize_t>(answers.size()), "no room");
        ::shutdown(ends_[1], SHUT_WR);
    }
    SilentLauncher(const SilentLauncher&) = delete;
    SilentLauncher& operator=(const SilentLauncher&) = delete;
    ~SilentLauncher() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    [[nodiscard]] FakeEnvironment environment() const {
        return {{"PMI_FD", std::to_string(ends_[0])}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
    }

private:
    int ends_[2]{};
};

template <class Client>
void check_conversation(Input answers) {
    constexpr std::chrono::seconds limit{60};  // never reached, because the stream has ended
    const SilentLauncher launcher(answers);
    auto client = Client::begin(launcher.environment(), launcher::Deadline::after(limit));
    require(client.ok() || client.status().code() != Code::timeout, "the end of the stream is not noticed");
    if (!client.ok()) return require_message(client.status());
    require(client.value().rank() >= 0 && client.value().rank() < client.value().nranks(), "an impossible rank");
    for (int i = 0; i < 2; ++i) {
        const auto message = client.value().broadcast("", launcher::Deadline::after(limit));
        require_message(message.status());
    }
    client.value().end();
}

// A word that is found must be written back as it was read.
void check_pmi2_message(std::string_view body) {
    const auto length = pmi2::Message::length(body.substr(0, pmi2::length_digits));
    require_message(length.status());
    const auto message = pmi2::Message::parse(body);
    if (!message.ok()) return require_message(message.status());
    if (message.value().command().find(';') != std::string::npos) return;  // no command of ours: not escaped
    const std::string value = message.value().find("value").value_or("");
    const std::string written = pmi2::Message::encode(message.value().command(), {{"value", value}});
    const auto digits = pmi2::Message::length(written.substr(0, pmi2::length_digits));
    require(digits.ok() && digits.value() == written.size() - pmi2::length_digits, "a wrong length");
    const auto again = pmi2::Message::parse(std::string_view(written).substr(pmi2::length_digits));
    require(again.ok() && again.value().command() == message.value().command(), "the command changes");
    require(again.value().find("value") == value, "a value changes by encoding and parsing");
}

void check_pmi_message(std::string_view line) {
    const auto message = pmi::Message::parse(line);
    if (!message.ok()) return require_message(message.status());
    require(!message.value().command().empty(), "a message without a command");
    require_message(message.value().number("rc").status());
}

}  // namespace

// The first byte selects the check.
void pmi(Input input) {
    Taker in(input);
    switch (in.byte() % 4) {
        case 0: return check_pmi_message(text_of(in.rest()));
        case 1: return check_pmi2_message(text_of(in.rest()));
        case 2: return check_conversation<pmi::PmiClient>(in.rest());
        default: return check_conversation<pmi2::Pmi2Client>(in.rest());
    }
}

}  // namespace npushmem::fuzz
