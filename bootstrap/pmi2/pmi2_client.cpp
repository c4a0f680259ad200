#include "bootstrap/pmi2/pmi2_client.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::pmi2 {
namespace {

constexpr std::int64_t max_ranks = 1 << 22;

Result<int> number_of(const std::string& what, const std::optional<std::string>& text) {
    const auto parsed = text ? parse_integer(*text, 0, max_ranks) : Result<std::int64_t>(Status{Code::config, ""});
    if (parsed.ok()) return static_cast<int>(parsed.value());
    return Status{Code::protocol, fmt::format("{} is '{}', not a number that can be", what, text.value_or("(absent)"))};
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
                      fmt::format("the launcher gave rank {} of {}, which cannot be", client.rank_, client.nranks_)};
    Status introduced = client.initialize(environment.get("PMI_JOBID"), deadline);
    return introduced.ok() ? Result<Pmi2Client>(std::move(client)) : Result<Pmi2Client>(introduced);
}

// The first line is of the older protocol, so that a launcher can tell which one this process speaks.
Status Pmi2Client::initialize(const std::optional<std::string>& job, Deadline deadline) {
    if (Status sent = stream_.send("cmd=init pmi_version=2 pmi_subversion=0\n", deadline); !sent.ok()) return sent;
    const auto answer = stream_.receive_line(deadline);
    if (!answer.ok()) return answer.status().within("PMI-2 init");
    if (answer.value().find("pmi_version=2") == std::string::npos || answer.value().find("rc=0") == std::string::npos)
        return {Code::unsupported, fmt::format("the launcher does not speak PMI-2: it answered '{}'; try "
                                               "NPUSHMEM_BOOTSTRAP=PMI",
                                               answer.value().substr(0, 100))};
    Message::Words words;
    if (job) words.emplace_back("pmijobid", *job);  // whoever names the job in the environment expects it back
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
    const auto met = call("kvs-fence", {}, deadline);
    if (!met.ok()) return met.status();
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
