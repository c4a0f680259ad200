// SPDX-License-Identifier: BSD-3-Clause
// The library of collectives of a job: all PEs open it and agree on what it supports, or all use npushmem's own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/coll/collectives_library.hpp"
#include "core/runtime/start_request.hpp"

namespace npushmem {

struct CollectivesChoice {
    std::unique_ptr<coll::CollectivesLibrary> library;  // null: npushmem's own collectives
    // For people: "mpi (set by NPUSHMEM_COLL_LIBRARY; Open MPI 4.1.4: barrier, ...)", or why the library is not used.
    // Empty: none was selected.
    std::string text;
    // The library was selected and cannot serve the job; `text` has the reason.
    [[nodiscard]] bool is_rejected() const { return library == nullptr && !text.empty(); }
};

// Collective if COLL_LIBRARY, which is equal on all PEs, names a library. `open` opens it. Fails if the plugin is
// missing or refused. `tuning` and what `log` needs outlive the library.
Result<CollectivesChoice> choose_collectives(const Settings& settings, Bootstrap& bootstrap,
                                             const std::function<Result<OwnedCollectives>()>& open,
                                             const barrier::Tuning& tuning, coll::CollectivesLibrary::LogLine log);

// Returns one sentence for each rule of the tuning file that selects a library that is not among `known`.
std::vector<std::string> unknown_libraries(const barrier::Tuning& tuning, std::vector<std::string> known);

}  // namespace npushmem
