// This process's side of the PMI-1 wire protocol, as far as a start needs it: one request line, one answer line.
#pragma once

#include <string>

#include "bootstrap/launcher/launcher.hpp"
#include "bootstrap/launcher/stream.hpp"
#include "bootstrap/pmi/message.hpp"
#include "core/base/environment.hpp"

namespace npushmem::pmi {

class PmiClient final : public launcher::Launcher {
public:
    using Deadline = launcher::Deadline;

    // Over PMI_FD, the socket that the launcher has left open for this process, or to PMI_PORT.
    static Result<PmiClient> begin(const Environment& environment, Deadline deadline);
    PmiClient(PmiClient&& other) noexcept
        : stream_(std::move(other.stream_)),
          broken_(std::move(other.broken_)),
          rank_(other.rank_),
          nranks_(other.nranks_),
          space_(std::move(other.space_)),
          shared_(other.shared_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> share(const std::string& note, Deadline deadline) override;
    // The launcher takes a process that goes without this for one that has crashed.
    void end();

private:
    explicit PmiClient(launcher::Stream stream) : stream_(std::move(stream)) {}
    static Result<PmiClient> reach(const Environment& environment, Deadline deadline);
    Status introduce(Deadline deadline);
    Status read_seat(const Environment& environment);
    Status await_seat(const std::string& id, Deadline deadline);
    // One request and its answer, which must be `answer` and have no rc but 0.
    Result<Message> ask(const std::string& request, const std::string& answer, Deadline deadline);
    Result<Message> exchange(const std::string& request, const std::string& answer, Deadline deadline);
    Result<Message> hear(const std::string& answer, Deadline deadline);

    launcher::Stream stream_;
    Status broken_;  // why the conversation cannot go on: an answer that did not come may still come
    int rank_ = -1;
    int nranks_ = -1;
    std::string space_;         // name of the job's key-value space
    std::uint64_t shared_ = 0;  // notes so far: each has a key of its own
};

}  // namespace npushmem::pmi
