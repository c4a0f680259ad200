// SPDX-License-Identifier: BSD-3-Clause
// A UCX context: the transports and devices that this PE uses, and the memory that it has registered.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/type/status.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::ucx {

// Translations between UCX and the transport: status codes, atomic operations, context information.

// The Code for a UCX status.
Code code_of_status(ucs_status_t status);
std::string text_of(ucs_status_t status);
// `what`: the call that failed.
Status failure(const char* what, ucs_status_t status);
// The failure of a system call, with errno.
Status system_failure(const char* what);

struct UcxAtomic {
    ucp_atomic_op_t operation;
    enum class Reply { none, dropped, wanted } reply;
};

// UCX's equivalent of a 64-bit NPUSHMEM_ATOMIC_x; empty when UCX has none.
std::optional<UcxAtomic> atomic_of(int operation);

// The transport of each resource that the output of ucp_context_print_info lists: "self", "tcp", "rc_verbs". Empty when
// it lists none. UCX offers this information as text for people only.
std::vector<std::string> transports_of(std::string_view context_info);

// The fastest network that a context can use between hosts. Over tcp UCX emulates all operations by messages.
enum class NetworkType { unknown, tcp, rdma };

// Recognises RDMA by the names of its transports: those within the host and those of GPUs are too many to list.
NetworkType network_of(const std::vector<std::string>& transports);

// The output of ucp_context_print_info; empty when memory runs out.
std::string info_of(ucp_context_h context);

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
