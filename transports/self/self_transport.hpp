// SPDX-License-Identifier: BSD-3-Clause
// Transport to the PE itself only, by plain loads and stores.
#pragma once

#include <map>
#include <memory>

#include "npushmem/plugin/mapped_transport.hpp"

namespace npushmem {

class SelfTransport final : public MappedTransport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    explicit SelfTransport(int pe) : pe_(pe) {}

    Reach reach(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    Code deregister_memory(std::uint64_t region) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;

private:
    struct Region {
        std::byte* base;
        std::uint64_t bytes;
    };
    // A memory handle. It never leaves the process, so its byte order does not matter.
    struct Handle {
        std::uint64_t magic;
        std::uint64_t region;
        std::int32_t pe;
        std::int32_t reserved;
    };

    int pe_;
    std::uint64_t last_region_ = 0;
    std::map<std::uint64_t, Region> regions_;
};

}  // namespace npushmem
