#include "bootstrap/pmi/pmi_client.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::pmi {
namespace {

constexpr int most_ranks = 1 << 22;

Result<int> number_in(const Environment& environment, const char* name) {
    const auto text = environment.get(name);
    if (!text) return Status{Code::config, fmt::format("{} is not set, although a PMI launcher sets it", name)};
    const auto parsed = parse_integer(*text, 0, most_ranks);
    if (!parsed.ok()) return Status{Code::config, fmt::format("{}='{}': {}", name, *text, parsed.status().message())};
    return static_cast<int>(parsed.value());
}

}  // namespace

Result<PmiClient> PmiClient::begin(const Environment& environment, Deadline deadline) {
    auto reached = reach(environment, deadline);
    if (!reached.ok()) return reached;
    PmiClient& client = reached.value();
    if (Status introduced = client.introduce(deadline); !introduced.ok()) return introduced;
    if (client.rank_ < 0 || client.nranks_ < 1 || client.rank_ >= client.nranks_)
        return Status{Code::protocol,
                      fmt::format("the launcher gave rank {} of {}, which cannot be", client.rank_, client.nranks_)};
    return reached;
}

Result<PmiClient> PmiClient::reach(const Environment& environment, Deadline deadline) {
    if (environment.get("PMI_FD")) {
        const auto fd = number_in(environment, "PMI_FD");
        if (!fd.ok()) return fd.status();
        PmiClient client(launcher::Stream::borrow(fd.value()));
        Status read = client.read_seat(environment);
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
    Status seated = client.await_seat(environment.get("PMI_ID").value_or("0"), deadline);
    return seated.ok() ? Result<PmiClient>(std::move(client)) : Result<PmiClient>(seated);
}

Status PmiClient::read_seat(const Environment& environment) {
    const auto rank = number_in(environment, "PMI_RANK");
    const auto nranks = number_in(environment, "PMI_SIZE");
    if (!rank.ok()) return rank.status();
    if (!nranks.ok()) return nranks.status();
    rank_ = rank.value();
    nranks_ = nranks.value();
    return {};
}

// Who comes by the port says who it is, and is told its size, rank and how much to talk, a line each.
Status PmiClient::await_seat(const std::string& id, Deadline deadline) {
    auto answer = exchange(fmt::format("cmd=initack pmiid={}\n", id), "initack", deadline);
    constexpr int facts = 3;
    for (int i = 0; i < facts && answer.ok(); ++i) {
        answer = hear("set", deadline);
        if (!answer.ok()) break;
        if (answer.value().find("size"))
            nranks_ = answer.value().number("size").ok() ? answer.value().number("size").value() : -1;
        if (answer.value().find("rank"))
            rank_ = answer.value().number("rank").ok() ? answer.value().number("rank").value() : -1;
    }
    return answer.status();
}

Status PmiClient::introduce(Deadline deadline) {
    const auto version = ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", deadline);
    if (!version.ok()) return version.status();
    const auto most = ask("cmd=get_maxes\n", "maxes", deadline);
    if (!most.ok()) return most.status();
    const auto value = most.value().number("vallen_max");
    if (!value.ok()) return value.status();
    if (value.value() < static_cast<int>(launcher::note_characters))
        return {Code::unsupported, fmt::format("the launcher's values have {} characters at most; {} are needed",
                                               value.value(), launcher::note_characters)};
    const auto name = ask("cmd=get_my_kvsname\n", "my_kvsname", deadline);
    if (name.ok()) space_ = name.value().find("kvsname").value_or("");
    return name.status();
}

Result<std::string> PmiClient::share(const std::string& note, Deadline deadline) {
    const std::string key = fmt::format("npushmem-start-{}", ++shared_);
    if (rank_ == 0) {
        const auto put =
            ask(fmt::format("cmd=put kvsname={} key={} value={}\n", space_, key, note), "put_result", deadline);
        if (!put.ok()) return put.status();
    }
    const auto met = ask("cmd=barrier_in\n", "barrier_out", deadline);
    if (!met.ok()) return met.status();
    if (rank_ == 0) return note;
    const auto got = ask(fmt::format("cmd=get kvsname={} key={}\n", space_, key), "get_result", deadline);
    if (!got.ok()) return got.status();
    return got.value().find("value").value_or("");
}

void PmiClient::end() {
    if (broken_.ok()) (void)ask("cmd=finalize\n", "finalize_ack", Deadline::after(std::chrono::seconds(5)));
}

Result<Message> PmiClient::ask(const std::string& request, const std::string& answer, Deadline deadline) {
    if (!broken_.ok()) return broken_.within("the launcher failed before");
    auto heard = exchange(request, answer, deadline);
    if (!heard.ok()) broken_ = heard.status();
    return heard;
}

Result<Message> PmiClient::exchange(const std::string& request, const std::string& answer, Deadline deadline) {
    const std::string what = fmt::format("PMI request '{}'", request.substr(0, request.find_first_of(" \n")));
    if (Status sent = stream_.send(request, deadline); !sent.ok()) return sent.within(what);
    auto heard = hear(answer, deadline);
    return heard.ok() ? std::move(heard) : Result<Message>(heard.status().within(what));
}

Result<Message> PmiClient::hear(const std::string& answer, Deadline deadline) {
    const auto line = stream_.receive_line(deadline);
    if (!line.ok()) return line.status();
    auto heard = Message::parse(line.value());
    if (!heard.ok()) return heard;
    if (heard.value().command() != answer)
        return Status{Code::protocol,
                      fmt::format("the launcher answered '{}' instead of '{}'", heard.value().command(), answer)};
    const auto rc = heard.value().find("rc");
    if (rc && *rc != "0")
        return Status{Code::protocol, fmt::format("the launcher refused: rc={} {}", *rc,
                                                  heard.value().find("msg").value_or("without a message"))};
    return heard;
}

}  // namespace npushmem::pmi
