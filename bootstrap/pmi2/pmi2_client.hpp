// This process's side of the PMI-2 wire protocol, as far as a start needs it: one request, one answer.
#pragma once

#include <string>

#include "bootstrap/launcher/launcher.hpp"
#include "bootstrap/launcher/stream.hpp"
#include "bootstrap/pmi2/message.hpp"
#include "core/base/config.hpp"

namespace npushmem::pmi2 {

class Pmi2Client final : public launcher::Launcher {
public:
    using Deadline = launcher::Deadline;

    // Over PMI_FD, the socket that the launcher has left open for this process.
    static Result<Pmi2Client> begin(const Environment& environment, Deadline deadline);
    Pmi2Client(Pmi2Client&& other) noexcept
        : stream_(std::move(other.stream_)),
          broken_(std::move(other.broken_)),
          rank_(other.rank_),
          nranks_(other.nranks_),
          broadcasts_(other.broadcasts_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> broadcast(const std::string& message, Deadline deadline) override;
    // The launcher takes a process that goes without this for one that has crashed.
    void end();

private:
    explicit Pmi2Client(launcher::Stream stream) : stream_(std::move(stream)) {}
    Status initialize(const std::optional<std::string>& job, Deadline deadline);
    // A request and its answer, which must be that command's and have no rc but 0.
    Result<Message> call(const std::string& command, const Message::Words& words, Deadline deadline);
    Result<Message> exchange(const std::string& command, const Message::Words& words, Deadline deadline);
    Result<Message> receive_message(Deadline deadline);

    launcher::Stream stream_;
    Status broken_;  // why the conversation cannot go on: an answer that did not come may still come
    int rank_ = -1;
    int nranks_ = -1;
    std::uint64_t broadcasts_ = 0;  // messages so far: each has a key of its own
};

}  // namespace npushmem::pmi2
