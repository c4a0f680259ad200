// SPDX-License-Identifier: BSD-3-Clause
// Client of the PMI-2 wire protocol.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/launcher/launched_job.hpp"
#include "bootstrap/launcher/stream.hpp"
#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::pmi2 {

inline constexpr std::size_t length_digits = 6;

// A PMI-2 message: its length in six characters, then a sequence of `name=value;`, the first of them the command. A
// semicolon inside a value is doubled.
class Message {
public:
    using Words = std::vector<std::pair<std::string, std::string>>;

    // Returns the message on the wire, with its length.
    static std::string encode(const std::string& command, const Words& words);
    // Returns the length from the first six characters; Code::protocol if they are not a number.
    static Result<std::size_t> length(std::string_view digits);
    // Parses the bytes after the length.
    static Result<Message> parse(std::string_view body);

    [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
    [[nodiscard]] std::string command() const { return find("cmd").value_or(""); }

private:
    std::map<std::string, std::string> words_;
};

// The client side of the PMI-2 wire protocol, as far as a start needs it: one request, one answer.
class Pmi2Client final : public launcher::Launcher {
public:
    using Deadline = launcher::Deadline;

    // Uses PMI_FD, the socket that the launcher has left open for this process.
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
    // The launcher assumes that a process that ends without this call has crashed.
    void end();

private:
    explicit Pmi2Client(launcher::Stream stream) : stream_(std::move(stream)) {}
    Status initialize(const std::optional<std::string>& job, Deadline deadline);
    // Sends a request and returns its answer, which must belong to that command and have no rc other than 0.
    Result<Message> call(const std::string& command, const Message::Words& words, Deadline deadline);
    Result<Message> exchange(const std::string& command, const Message::Words& words, Deadline deadline);
    Result<Message> receive_message(Deadline deadline);

    launcher::Stream stream_;
    Status broken_;  // why the connection is unusable: a late answer may still arrive
    int rank_ = -1;
    int nranks_ = -1;
    std::uint64_t broadcasts_ = 0;  // messages so far; each has its own key
};

}  // namespace npushmem::pmi2
