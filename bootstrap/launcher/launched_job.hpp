// How the ranks that a launcher has started become a job.
#pragma once

#include <memory>

#include "bootstrap/launcher/launcher.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::launcher {

// Collective. Rank 0 serves a rendezvous and passes its id on by the launcher; all meet there. A rank that cannot take
// part, because of its configuration for instance, comes to say so.
Result<std::unique_ptr<Bootstrap>> join_launched_job(const Host& host, Launcher& launcher);

}  // namespace npushmem::launcher
