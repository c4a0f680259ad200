// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap `uid`: processes start a job over TCP, or through memory of their host, given only a unique id, their
// rank and the number of ranks.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::uid {

class UidBootstrap {
public:
    // The id comes from the caller, else from the host's UNIQUEID, else from BOOTSTRAP_UID_SESSION_ID; rank and number
    // come from the caller, else from the host's PE and NPES. Without any of them the process is a job of one rank.
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    // Starts the rendezvous service unless this process already has one at that address; see rendezvous_service.hpp.
    static Status get_uniqueid(const Host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);
    // Reports the end of a rank of a job whose id this process has created.
    static Status rank_ended(const Host& host, std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank,
                             int nranks, const std::string& how);
    // Certain if an id was given in any way; otherwise the last resort, a job of one rank.
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::uid
