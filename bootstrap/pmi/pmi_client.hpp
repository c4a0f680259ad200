// This process's side of the PMI-1 wire protocol, as far as a start needs it: one request line, one answer line.
#pragma once

#include <string>

#include "bootstrap/launcher/launcher.hpp"
#include "bootstrap/launcher/stream.hpp"
#include "bootstrap/pmi/message.hpp"
#include "core/base/config.hpp"

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
          kvs_name_(std::move(other.kvs_name_)),
          broadcasts_(other.broadcasts_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> broadcast(const std::string& message, Deadline deadline) override;
    // The launcher takes a process that goes without this for one that has crashed.
    void end();

private:
    explicit PmiClient(launcher::Stream stream) : stream_(std::move(stream)) {}
    static Result<PmiClient> connect(const Environment& environment, Deadline deadline);
    Status initialize(Deadline deadline);
    Status read_rank_and_size(const Environment& environment);
    Status receive_rank_and_size(const std::string& id, Deadline deadline);
    // One request and its answer, which must be `answer` and have no rc but 0.
    Result<Message> call(const std::string& request, const std::string& answer, Deadline deadline);
    Result<Message> exchange(const std::string& request, const std::string& answer, Deadline deadline);
    Result<Message> receive_answer(const std::string& answer, Deadline deadline);

    launcher::Stream stream_;
    Status broken_;  // why the conversation cannot go on: an answer that did not come may still come
    int rank_ = -1;
    int nranks_ = -1;
    std::string kvs_name_;          // name of the job's key-value space
    std::uint64_t broadcasts_ = 0;  // messages so far: each has a key of its own
};

}  // namespace npushmem::pmi
