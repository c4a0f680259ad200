#include "bootstrap/launcher/launched_job.hpp"

#include <fmt/format.h>

#include "bootstrap/launcher/start_message.hpp"
#include "bootstrap/rendezvous/join.hpp"
#include "bootstrap/rendezvous/rendezvous_services.hpp"

namespace npushmem::launcher {
namespace {

using rendezvous::Settings;
using rendezvous::UniqueId;

Result<UniqueId> serve_rendezvous(const Result<Settings>& settings) {
    if (!settings.ok()) return settings.status();
    const auto where = settings.value().local_address();
    if (!where.ok()) return where.status();
    return rendezvous::RendezvousServices::of_process().serve(where.value(), UniqueId::make);
}

// Rank 0's own failure is more than what of it fits into a message.
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
    // One rank needs no id, and nobody else's launcher.
    const auto id =
        launcher.nranks() == 1 ? Result<UniqueId>(UniqueId{}) : broadcast_id(read, launcher, Deadline::after(timeout));
    if (!id.ok()) return id.status();
    return rendezvous::join_or_report(read, fallback, id.value(), launcher.rank(), launcher.nranks());
}

}  // namespace npushmem::launcher
