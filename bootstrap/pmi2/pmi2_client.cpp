// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi2/pmi2_client.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::pmi2 {

namespace {

constexpr std::int64_t longest_body = 64 * 1024;  // longer input is garbage

std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) out += c == ';' ? std::string(";;") : std::string(1, c);
    return out;
}

// Removes the first word and its semicolon, and replaces doubled semicolons.
std::string take_word(std::string_view& rest) {
    std::string word;
    while (!rest.empty()) {
        const char c = rest.front();
        const bool doubled = c == ';' && rest.size() > 1 && rest[1] == ';';
        rest.remove_prefix(doubled ? 2 : 1);
        if (c == ';' && !doubled) break;
        word.push_back(c);
    }
    return word;
}

}  // namespace

std::string Message::encode(const std::string& command, const Words& words) {
    std::string body = fmt::format("cmd={};", command);
    for (const auto& [name, value] : words) body += fmt::format("{}={};", name, escaped(value));
    return fmt::format("{:>{}}{}", body.size(), length_digits, body);
}

Result<std::size_t> Message::length(std::string_view digits) {
    const auto parsed = parse_integer(trimmed(digits), 1, longest_body);
    if (!parsed.ok())
        return Status{Code::protocol, fmt::format("expected the length of a message, but the launcher sent '{}'",
                                                  digits.substr(0, 32))};
    return static_cast<std::size_t>(parsed.value());
}

Result<Message> Message::parse(std::string_view body) {
    Message made;
    for (std::string_view rest = body; !rest.empty();) {
        const std::string word = take_word(rest);
        const auto equals = word.find('=');
        if (equals != std::string::npos && equals > 0)
            made.words_.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    if (made.command().empty())
        return Status{Code::protocol,
                      fmt::format("the launcher sent '{}', which is not a PMI-2 message", body.substr(0, 80))};
    return made;
}

std::optional<std::string> Message::find(const std::string& name) const {
    const auto found = words_.find(name);
    return found == words_.end() ? std::nullopt : std::optional(found->second);
}

namespace {

constexpr std::int64_t max_ranks = 1 << 22;

Result<int> number_of(const std::string& what, const std::optional<std::string>& text) {
    const auto parsed = text ? parse_integer(*text, 0, max_ranks) : Result<std::int64_t>(Status{Code::config, ""});
    if (parsed.ok()) return static_cast<int>(parsed.value());
    return Status{Code::protocol, fmt::format("{} is '{}', not a valid number", what, text.value_or("(absent)"))};
}

}  // namespace

Result<Pmi2Client> Pmi2Client::begin(const Environment& environment, Deadline deadline) {
    const auto given = environment.get("PMI_FD");
    if (!given)
        return Status{Code::config,
                      "PMI_FD is not set: no PMI-2 launcher has started this process; start it with srun "
                      "--mpi=pmi2 or mpiexec of MPICH, or choose another NPUSHMEM_BOOTSTRAP"};
    const auto fd = number_of("PMI_FD", given);
    const auto rank = number_of("PMI_RANK", environment.get("PMI_RANK"));
    const auto nranks = number_of("PMI_SIZE", environment.get("PMI_SIZE"));
    for (const Status& wrong : {fd.status(), rank.status(), nranks.status()})
        if (!wrong.ok()) return wrong;
    Pmi2Client client(launcher::Stream::borrow(fd.value()));
    client.rank_ = rank.value();
    client.nranks_ = nranks.value();
    if (client.rank_ >= client.nranks_)
        return Status{Code::protocol,
                      fmt::format("the launcher gave the invalid rank {} of {}", client.rank_, client.nranks_)};
    Status introduced = client.initialize(environment.get("PMI_JOBID"), deadline);
    return introduced.ok() ? Result<Pmi2Client>(std::move(client)) : Result<Pmi2Client>(introduced);
}

// The first line follows PMI-1, so that a launcher can detect the protocol of this process.
Status Pmi2Client::initialize(const std::optional<std::string>& job, Deadline deadline) {
    if (Status sent = stream_.send("cmd=init pmi_version=2 pmi_subversion=0\n", deadline); !sent.ok()) return sent;
    const auto answer = stream_.receive_line(deadline);
    if (!answer.ok()) return answer.status().within("PMI-2 init");
    if (answer.value().find("pmi_version=2") == std::string::npos || answer.value().find("rc=0") == std::string::npos)
        return {Code::unsupported, fmt::format("the launcher does not support PMI-2: it answered '{}'; try "
                                               "NPUSHMEM_BOOTSTRAP=PMI",
                                               answer.value().substr(0, 100))};
    Message::Words words;
    if (job) words.emplace_back("pmijobid", *job);  // a launcher that sets PMI_JOBID expects it back
    words.emplace_back("pmirank", std::to_string(rank_));
    words.emplace_back("threaded", "FALSE");
    return call("fullinit", words, deadline).status();
}

Result<std::string> Pmi2Client::broadcast(const std::string& message, Deadline deadline) {
    const std::string key = fmt::format("npushmem-start-{}", ++broadcasts_);
    if (rank_ == 0) {
        const auto put = call("kvs-put", {{"key", key}, {"value", message}}, deadline);
        if (!put.ok()) return put.status();
    }
    const auto fence = call("kvs-fence", {}, deadline);
    if (!fence.ok()) return fence.status();
    if (rank_ == 0) return message;
    const auto got = call("kvs-get", {{"jobid", ""}, {"srcid", "-1"}, {"key", key}}, deadline);
    if (!got.ok()) return got.status();
    return got.value().find("value").value_or("");
}

void Pmi2Client::end() {
    if (broken_.ok()) (void)call("finalize", {}, Deadline::after(std::chrono::seconds(5)));
}

Result<Message> Pmi2Client::call(const std::string& command, const Message::Words& words, Deadline deadline) {
    if (!broken_.ok()) return broken_.within("the launcher failed before");
    auto answer = exchange(command, words, deadline);
    if (!answer.ok()) broken_ = answer.status().within(fmt::format("PMI-2 request '{}'", command));
    return answer.ok() ? std::move(answer) : Result<Message>(broken_);
}

Result<Message> Pmi2Client::exchange(const std::string& command, const Message::Words& words, Deadline deadline) {
    if (Status sent = stream_.send(Message::encode(command, words), deadline); !sent.ok()) return sent;
    auto answer = receive_message(deadline);
    if (!answer.ok()) return answer;
    if (answer.value().command() != command + "-response")
        return Status{Code::protocol, fmt::format("the launcher answered '{}'", answer.value().command())};
    const auto rc = answer.value().find("rc");
    if (rc && *rc != "0")
        return Status{Code::protocol, fmt::format("the launcher refused: rc={} {}", *rc,
                                                  answer.value().find("errmsg").value_or("without a message"))};
    return answer;
}

Result<Message> Pmi2Client::receive_message(Deadline deadline) {
    const auto digits = stream_.receive(length_digits, deadline);
    if (!digits.ok()) return digits.status();
    const auto length = Message::length(digits.value());
    if (!length.ok()) return length.status();
    const auto body = stream_.receive(length.value(), deadline);
    return body.ok() ? Message::parse(body.value()) : Result<Message>(body.status());
}

}  // namespace npushmem::pmi2
