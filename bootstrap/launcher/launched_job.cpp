#include "bootstrap/launcher/launched_job.hpp"

#include <fmt/format.h>

#include "bootstrap/launcher/note.hpp"
#include "bootstrap/rendezvous/join.hpp"
#include "bootstrap/rendezvous/service_shelf.hpp"

namespace npushmem::launcher {
namespace {

using rendezvous::Settings;
using rendezvous::UniqueId;

Result<UniqueId> serve_rendezvous(const Result<Settings>& settings) {
    if (!settings.ok()) return settings.status();
    const auto where = settings.value().local_address();
    if (!where.ok()) return where.status();
    return rendezvous::ServiceShelf::of_process().serve(where.value(), UniqueId::make);
}

// Rank 0's own failure is more than what of it fits into a note.
Result<UniqueId> agree_on_id(const Result<Settings>& settings, Launcher& launcher, Deadline deadline) {
    if (launcher.rank() != 0) {
        auto note = launcher.share("", deadline);
        return note.ok() ? decode_note(note.value()) : Result<UniqueId>(note.status());
    }
    auto served = serve_rendezvous(settings);
    auto told = launcher.share(encode_note(served), deadline);
    return served.ok() && !told.ok() ? Result<UniqueId>(told.status()) : std::move(served);
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_launched_job(const Host& host, Launcher& launcher) {
    const auto read = Settings::read(host);
    const Settings fallback = Settings::to_tell_with(host);
    const auto patience = read.ok() ? read.value().timeout : fallback.timeout;
    // One rank needs no id, and nobody else's launcher.
    const auto id =
        launcher.nranks() == 1 ? Result<UniqueId>(UniqueId{}) : agree_on_id(read, launcher, Deadline::after(patience));
    if (!id.ok()) return id.status();
    return rendezvous::join_or_tell(read, fallback, id.value(), launcher.rank(), launcher.nranks());
}

}  // namespace npushmem::launcher
