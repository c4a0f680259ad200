// The last step of every start: the ranks know the id and meet.
#pragma once

#include <memory>

#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::rendezvous {

// Collective, 0 <= rank < nranks. A rank whose settings could not be read takes part with `fallback`, tells the others
// why the job cannot start, and fails with that.
Result<std::unique_ptr<Bootstrap>> join_or_report(const Result<Settings>& read, const Settings& fallback,
                                                  const UniqueId& id, int rank, int nranks);

}  // namespace npushmem::rendezvous
