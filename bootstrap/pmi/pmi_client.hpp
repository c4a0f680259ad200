// SPDX-License-Identifier: BSD-3-Clause
// Client of the PMI-1 wire protocol.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/launcher/stream.hpp"
#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::pmi {

// A PMI-1 message: a line of words `name=value`, the first of them the command.
class Message {
public:
    // Code::protocol for a line that is not a message.
    static Result<Message> parse(std::string_view line);

    [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
    [[nodiscard]] std::string command() const { return find("cmd").value_or(""); }
    // Code::protocol if it is missing or not a whole number.
    [[nodiscard]] Result<int> number(const std::string& name) const;

private:
    std::map<std::string, std::string> words_;
};

// The client side of the PMI-1 wire protocol, as far as a start needs it: one request line, one answer line.
class PmiClient final : public launcher::Launcher {
public:
    using Deadline = launcher::Deadline;

    // Uses PMI_FD, the socket that the launcher has left open for this process, or connects to PMI_PORT.
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
    // The launcher assumes that a process that ends without this call has crashed.
    void end();

private:
    explicit PmiClient(launcher::Stream stream) : stream_(std::move(stream)) {}
    static Result<PmiClient> connect(const Environment& environment, Deadline deadline);
    Status initialize(Deadline deadline);
    Status read_rank_and_size(const Environment& environment);
    Status receive_rank_and_size(const std::string& id, Deadline deadline);
    // Sends a request and returns its answer, which must be `answer` and have no rc other than 0.
    Result<Message> call(const std::string& request, const std::string& answer, Deadline deadline);
    Result<Message> exchange(const std::string& request, const std::string& answer, Deadline deadline);
    Result<Message> receive_answer(const std::string& answer, Deadline deadline);

    launcher::Stream stream_;
    Status broken_;  // why the connection is unusable: a late answer may still arrive
    int rank_ = -1;
    int nranks_ = -1;
    std::string kvs_name_;          // name of the job's key-value space
    std::uint64_t broadcasts_ = 0;  // messages so far; each has its own key
};

}  // namespace npushmem::pmi
