// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launcher/launched_job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <charconv>

#include "bootstrap/rendezvous/job_join.hpp"
#include "bootstrap/rendezvous/rendezvous_service.hpp"

namespace npushmem::launcher {

namespace {

// MPI_Initialized and MPI_Finalized have this signature in every MPI.
bool ask(const char* function) {
    using Question = int (*)(int*);
    const auto question = reinterpret_cast<Question>(::dlsym(RTLD_DEFAULT, function));
    int answer = 0;
    return question != nullptr && question(&answer) == 0 && answer != 0;
}

}  // namespace

bool mpi_is_running() { return ask("MPI_Initialized") && !ask("MPI_Finalized"); }

namespace {

constexpr char id_mark = 'i';
constexpr char failure_mark = 'f';

std::string hex(std::span<const std::byte> bytes) {
    std::string out;
    for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return out;
}

std::string text_of_hex(std::string_view digits) {
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        unsigned char value = '?';
        std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
        out.push_back(static_cast<char>(value));
    }
    return out;
}

}  // namespace

std::string encode_start_message(const Result<rendezvous::UniqueId>& served) {
    if (served.ok()) return id_mark + hex(served.value().encode());
    const std::string message = served.status().message().substr(0, (start_message_characters - 1) / 2);
    return failure_mark + hex(std::as_bytes(std::span(message)));
}

Result<rendezvous::UniqueId> decode_start_message(const std::string& message) {
    if (message.starts_with(id_mark)) return rendezvous::UniqueId::decode_hex(message.substr(1));
    if (!message.starts_with(failure_mark))
        return Status{Code::protocol, fmt::format("rank 0 sent '{}', which is not a start message of npushmem; "
                                                  "do all ranks run the same program?",
                                                  message.substr(0, 64))};
    return Status{Code::aborted,
                  "rank 0 cannot serve the start of the job: " + text_of_hex(std::string_view(message).substr(1))};
}

namespace {

using rendezvous::Settings;
using rendezvous::UniqueId;

Result<UniqueId> serve_rendezvous(const Result<Settings>& settings) {
    if (!settings.ok()) return settings.status();
    const auto where = settings.value().local_address();
    if (!where.ok()) return where.status();
    return rendezvous::RendezvousServices::of_process().serve(where.value(), UniqueId::make);
}

// Rank 0 keeps its own failure, which the message may truncate.
Result<UniqueId> broadcast_id(const Result<Settings>& settings, Launcher& launcher, Deadline deadline) {
    if (launcher.rank() != 0) {
        auto message = launcher.broadcast("", deadline);
        return message.ok() ? decode_start_message(message.value()) : Result<UniqueId>(message.status());
    }
    auto served = serve_rendezvous(settings);
    auto sent = launcher.broadcast(encode_start_message(served), deadline);
    return served.ok() && !sent.ok() ? Result<UniqueId>(sent.status()) : std::move(served);
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_launched_job(const Host& host, Launcher& launcher) {
    const auto read = Settings::read(host);
    const Settings fallback = Settings::reporting_defaults(host);
    const auto timeout = read.ok() ? read.value().timeout : fallback.timeout;
    // One rank needs no id and no launcher.
    const auto id =
        launcher.nranks() == 1 ? Result<UniqueId>(UniqueId{}) : broadcast_id(read, launcher, Deadline::after(timeout));
    if (!id.ok()) return id.status();
    return rendezvous::join_or_report(host, read, fallback, id.value(), launcher.rank(), launcher.nranks());
}

}  // namespace npushmem::launcher
