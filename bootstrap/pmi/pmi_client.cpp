// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi/pmi_client.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::pmi {

namespace {

Status garbage(std::string_view line) {
    return {Code::protocol, fmt::format("the launcher sent '{}', which is not a PMI message", line.substr(0, 80))};
}

}  // namespace

Result<Message> Message::parse(std::string_view line) {
    Message made;
    const std::string_view whole = line;
    while (!line.empty()) {
        const std::string_view word = line.substr(0, line.find(' '));
        line.remove_prefix(std::min(line.size(), word.size() + 1));
        const auto equals = word.find('=');
        if (word.empty()) continue;
        // The words of an explanation (msg=) have no name; no expected word is among them.
        if (equals == std::string_view::npos || equals == 0) continue;
        made.words_.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    if (made.command().empty()) return garbage(whole);
    return made;
}

std::optional<std::string> Message::find(const std::string& name) const {
    const auto found = words_.find(name);
    return found == words_.end() ? std::nullopt : std::optional(found->second);
}

Result<int> Message::number(const std::string& name) const {
    const auto text = find(name);
    if (!text) return Status{Code::protocol, fmt::format("the launcher's '{}' lacks {}", command(), name)};
    const auto parsed = parse_integer(*text, -1, 1 << 30);
    if (!parsed.ok())
        return Status{Code::protocol, fmt::format("the launcher's '{}' has {}='{}'", command(), name, *text)};
    return static_cast<int>(parsed.value());
}

namespace {

constexpr int max_ranks = 1 << 22;

Result<int> number_in(const Environment& environment, const char* name) {
    const auto text = environment.get(name);
    if (!text) return Status{Code::config, fmt::format("{} is not set, although a PMI launcher sets it", name)};
    const auto parsed = parse_integer(*text, 0, max_ranks);
    if (!parsed.ok()) return Status{Code::config, fmt::format("{}='{}': {}", name, *text, parsed.status().message())};
    return static_cast<int>(parsed.value());
}

}  // namespace

Result<PmiClient> PmiClient::begin(const Environment& environment, Deadline deadline) {
    auto reached = connect(environment, deadline);
    if (!reached.ok()) return reached;
    PmiClient& client = reached.value();
    if (Status introduced = client.initialize(deadline); !introduced.ok()) return introduced;
    if (client.rank_ < 0 || client.nranks_ < 1 || client.rank_ >= client.nranks_)
        return Status{Code::protocol,
                      fmt::format("the launcher gave the invalid rank {} of {}", client.rank_, client.nranks_)};
    return reached;
}

Result<PmiClient> PmiClient::connect(const Environment& environment, Deadline deadline) {
    if (environment.get("PMI_FD")) {
        const auto fd = number_in(environment, "PMI_FD");
        if (!fd.ok()) return fd.status();
        PmiClient client(launcher::Stream::borrow(fd.value()));
        Status read = client.read_rank_and_size(environment);
        return read.ok() ? Result<PmiClient>(std::move(client)) : Result<PmiClient>(read);
    }
    const auto port = environment.get("PMI_PORT");
    if (!port)
        return Status{Code::config,
                      "neither PMI_FD nor PMI_PORT is set: no PMI-1 launcher has started this process; "
                      "start it with mpiexec of MPICH or srun --mpi=pmi2, or choose another "
                      "NPUSHMEM_BOOTSTRAP"};
    auto stream = launcher::Stream::connect(*port, deadline);
    if (!stream.ok()) return stream.status().within("PMI_PORT");
    PmiClient client(std::move(stream).value());
    Status placed = client.receive_rank_and_size(environment.get("PMI_ID").value_or("0"), deadline);
    return placed.ok() ? Result<PmiClient>(std::move(client)) : Result<PmiClient>(placed);
}

Status PmiClient::read_rank_and_size(const Environment& environment) {
    const auto rank = number_in(environment, "PMI_RANK");
    const auto nranks = number_in(environment, "PMI_SIZE");
    if (!rank.ok()) return rank.status();
    if (!nranks.ok()) return nranks.status();
    rank_ = rank.value();
    nranks_ = nranks.value();
    return {};
}

// A client that connects to the port sends its id and receives its size, rank and debug level, one line each.
Status PmiClient::receive_rank_and_size(const std::string& id, Deadline deadline) {
    auto answer = exchange(fmt::format("cmd=initack pmiid={}\n", id), "initack", deadline);
    constexpr int facts = 3;
    for (int i = 0; i < facts && answer.ok(); ++i) {
        answer = receive_answer("set", deadline);
        if (!answer.ok()) break;
        if (answer.value().find("size"))
            nranks_ = answer.value().number("size").ok() ? answer.value().number("size").value() : -1;
        if (answer.value().find("rank"))
            rank_ = answer.value().number("rank").ok() ? answer.value().number("rank").value() : -1;
    }
    return answer.status();
}

Status PmiClient::initialize(Deadline deadline) {
    const auto version = call("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", deadline);
    if (!version.ok()) return version.status();
    const auto most = call("cmd=get_maxes\n", "maxes", deadline);
    if (!most.ok()) return most.status();
    const auto value = most.value().number("vallen_max");
    if (!value.ok()) return value.status();
    if (value.value() < static_cast<int>(launcher::start_message_characters))
        return {Code::unsupported, fmt::format("the launcher's values have at most {} characters; {} are needed",
                                               value.value(), launcher::start_message_characters)};
    const auto name = call("cmd=get_my_kvsname\n", "my_kvsname", deadline);
    if (name.ok()) kvs_name_ = name.value().find("kvsname").value_or("");
    return name.status();
}

Result<std::string> PmiClient::broadcast(const std::string& message, Deadline deadline) {
    const std::string key = fmt::format("npushmem-start-{}", ++broadcasts_);
    if (rank_ == 0) {
        const auto put =
            call(fmt::format("cmd=put kvsname={} key={} value={}\n", kvs_name_, key, message), "put_result", deadline);
        if (!put.ok()) return put.status();
    }
    const auto fence = call("cmd=barrier_in\n", "barrier_out", deadline);
    if (!fence.ok()) return fence.status();
    if (rank_ == 0) return message;
    const auto got = call(fmt::format("cmd=get kvsname={} key={}\n", kvs_name_, key), "get_result", deadline);
    if (!got.ok()) return got.status();
    return got.value().find("value").value_or("");
}

void PmiClient::end() {
    if (broken_.ok()) (void)call("cmd=finalize\n", "finalize_ack", Deadline::after(std::chrono::seconds(5)));
}

Result<Message> PmiClient::call(const std::string& request, const std::string& answer, Deadline deadline) {
    if (!broken_.ok()) return broken_.within("the launcher failed before");
    auto received = exchange(request, answer, deadline);
    if (!received.ok()) broken_ = received.status();
    return received;
}

Result<Message> PmiClient::exchange(const std::string& request, const std::string& answer, Deadline deadline) {
    const std::string what = fmt::format("PMI request '{}'", request.substr(0, request.find_first_of(" \n")));
    if (Status sent = stream_.send(request, deadline); !sent.ok()) return sent.within(what);
    auto received = receive_answer(answer, deadline);
    return received.ok() ? std::move(received) : Result<Message>(received.status().within(what));
}

Result<Message> PmiClient::receive_answer(const std::string& answer, Deadline deadline) {
    const auto line = stream_.receive_line(deadline);
    if (!line.ok()) return line.status();
    auto received = Message::parse(line.value());
    if (!received.ok()) return received;
    if (received.value().command() != answer)
        return Status{Code::protocol,
                      fmt::format("the launcher answered '{}' instead of '{}'", received.value().command(), answer)};
    const auto rc = received.value().find("rc");
    if (rc && *rc != "0")
        return Status{Code::protocol, fmt::format("the launcher refused: rc={} {}", *rc,
                                                  received.value().find("msg").value_or("without a message"))};
    return received;
}

}  // namespace npushmem::pmi
