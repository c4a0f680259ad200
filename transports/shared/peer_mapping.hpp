// Part of another process's shared file, mapped into this one; unmapped when the value goes.
#pragma once

#include <cstddef>
#include <memory>

#include "npushmem/plugin/status.hpp"
#include "transports/shared/memory_handle.hpp"

namespace npushmem::shared_memory {

class PeerMapping {
public:
    // Opens the file through the peer's descriptor, makes sure that it is the one the handle means, and maps the
    // handle's range. The error says why not: the process has gone, permission, a descriptor used for something else
    // meanwhile, a file too short.
    static Result<std::shared_ptr<const PeerMapping>> make(const MemoryHandle& handle);

    PeerMapping(void* start, std::size_t length, std::size_t lead) : start_(start), length_(length), lead_(lead) {}
    PeerMapping(const PeerMapping&) = delete;
    PeerMapping& operator=(const PeerMapping&) = delete;
    ~PeerMapping();

    // Where the handle's range begins.
    [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(start_) + lead_; }

private:
    void* start_;         // of whole pages
    std::size_t length_;  // likewise
    std::size_t lead_;    // from the first page's begin to the range's
};

}  // namespace npushmem::shared_memory
