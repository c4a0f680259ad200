// The bootstrap `uid`: processes find each other over TCP with nothing but a unique id, their rank and their number.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::uid {

class UidBootstrap {
public:
    // The id is the caller's, else the host's UNIQUEID, else the one that BOOTSTRAP_UID_SESSION_ID stands for; rank and
    // number are the caller's, else the host's PE and NPES. Without any of them, the process is a job of one.
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    // Starts the rendezvous service if this process has none at that address yet; see rendezvous_services.hpp.
    static Status get_uniqueid(const Host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);
    // Of an id that this process has made.
    static Status rank_ended(const Host& host, std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank,
                             int nranks, const std::string& how);
    // Certain when an id was given in any way; otherwise the last resort, a job of one.
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::uid
