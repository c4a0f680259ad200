// A UCX context: the transports and devices that this PE uses, and the memory that it has registered.
#pragma once

#include <ucp/api/ucp.h>

#include <map>
#include <string>

#include "transports/network/wire.hpp"

namespace npushmem::ucx {

struct UcxOptions {
    std::string transports;  // as UCX_TLS; empty: from the environment
    std::string devices;     // as UCX_NET_DEVICES; empty: from the environment
    bool atomics = false;    // use UCX's atomics
};

class UcxContext {
public:
    UcxContext() = default;
    UcxContext(const UcxContext&) = delete;
    UcxContext& operator=(const UcxContext&) = delete;
    // Deregisters all memory. The workers must be closed.
    ~UcxContext();

    Status open(const UcxOptions& options, int npes);
    [[nodiscard]] ucp_context_h get() const { return context_; }

    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes);
    void deregister_memory(std::uint64_t number);

private:
    ucp_context_h context_ = nullptr;
    std::map<std::uint64_t, ucp_mem_h> memory_;
    std::uint64_t last_number_ = 0;
};

}  // namespace npushmem::ucx
