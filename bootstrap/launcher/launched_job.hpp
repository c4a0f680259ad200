// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose ranks another launcher has started: the services of that launcher, and how its ranks join the rendezvous.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "bootstrap/launcher/process_singleton.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"
#include "core/base/config.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::launcher {

using rendezvous::Deadline;

// The longest message. Messages consist of letters and digits, so they need no quoting.
inline constexpr std::size_t start_message_characters = 513;

// Another launcher must provide the rank of this process, the number of ranks, and one short broadcast from rank 0. The
// ranks do everything else over the rendezvous, where a failure wakes all ranks that wait; launchers do not promise
// that.
class Launcher {
public:
    Launcher() = default;
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    virtual ~Launcher() = default;

    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int nranks() const = 0;
    // Collective; may be repeated. Returns rank 0's message; the others' messages are ignored.
    virtual Result<std::string> broadcast(const std::string& message, Deadline deadline) = 0;
};

// The start message: rank 0 broadcasts the id of the rendezvous that it serves, or why it serves none.

// "i" and the id in hex digits, or "f" and the error message in hex digits, truncated.
std::string encode_start_message(const Result<rendezvous::UniqueId>& served);
// Code::aborted with rank 0's message; Code::protocol for text that is not a start message.
Result<rendezvous::UniqueId> decode_start_message(const std::string& message);

// Collective. Rank 0 serves a rendezvous and broadcasts its id through the launcher; all ranks join it. A rank that
// cannot take part, for example because of its configuration, joins to report that.
Result<std::unique_ptr<Bootstrap>> join_launched_job(const Host& host, Launcher& launcher);

// Jobs of launchers that use a PMI wire protocol.

// Is any MPI library running in this process: has MPI_Init returned, and MPI_Finalize not been called? Links none.
bool mpi_is_running();

// Opens a job of a plugin that uses a PMI wire protocol. Client: a Launcher as for ProcessSingleton, begun with the
// environment and a deadline. Collective.
template <class Client>
Result<std::unique_ptr<Bootstrap>> open_pmi_job(ProcessSingleton<Client>& client_of_process, const Host& host) {
    if (mpi_is_running())
        return Status{Code::state,
                      "MPI runs in this process and owns its connection to the launcher; use "
                      "NPUSHMEM_BOOTSTRAP=MPI"};
    const auto settings = rendezvous::Settings::read(host);
    const auto timeout = (settings.ok() ? settings.value() : rendezvous::Settings::reporting_defaults(host)).timeout;
    return client_of_process.with([&] { return Client::begin(ProcessEnvironment(), Deadline::after(timeout)); },
                                  [&](Client& client) { return join_launched_job(host, client); });
}

}  // namespace npushmem::launcher
