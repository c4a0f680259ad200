// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/ucx_context.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "npushmem/plugin/transport.h"

namespace npushmem::ucx {

Code code_of_status(ucs_status_t status) {
    switch (status) {
        case UCS_OK: return Code::ok;
        case UCS_ERR_NO_RESOURCE: return Code::again;
        case UCS_ERR_NO_MEMORY: return Code::memory;
        case UCS_ERR_INVALID_PARAM: return Code::argument;
        case UCS_ERR_UNREACHABLE:
        case UCS_ERR_NO_DEVICE: return Code::unreachable;
        case UCS_ERR_UNSUPPORTED:
        case UCS_ERR_NOT_IMPLEMENTED: return Code::unsupported;
        case UCS_ERR_TIMED_OUT:
        case UCS_ERR_ENDPOINT_TIMEOUT: return Code::timeout;
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_REJECTED:
        case UCS_ERR_CANCELED: return Code::peer_dead;
        default: return Code::system;
    }
}

std::string text_of(ucs_status_t status) { return ucs_status_string(status); }

Status failure(const char* what, ucs_status_t status) {
    return {code_of_status(status), fmt::format("{}: {}", what, text_of(status))};
}

Status system_failure(const char* what) {
    return {Code::system, fmt::format("{} for UCX: {}", what, std::strerror(errno))};
}

std::optional<UcxAtomic> atomic_of(int operation) {
    using Reply = UcxAtomic::Reply;
    switch (operation) {
        case NPUSHMEM_ATOMIC_FETCH:  // adds 0
        case NPUSHMEM_ATOMIC_FETCH_ADD: return UcxAtomic{UCP_ATOMIC_OP_ADD, Reply::wanted};
        case NPUSHMEM_ATOMIC_SET: return UcxAtomic{UCP_ATOMIC_OP_SWAP, Reply::dropped};
        case NPUSHMEM_ATOMIC_ADD: return UcxAtomic{UCP_ATOMIC_OP_ADD, Reply::none};
        case NPUSHMEM_ATOMIC_AND: return UcxAtomic{UCP_ATOMIC_OP_AND, Reply::none};
        case NPUSHMEM_ATOMIC_OR: return UcxAtomic{UCP_ATOMIC_OP_OR, Reply::none};
        case NPUSHMEM_ATOMIC_XOR: return UcxAtomic{UCP_ATOMIC_OP_XOR, Reply::none};
        case NPUSHMEM_ATOMIC_SWAP: return UcxAtomic{UCP_ATOMIC_OP_SWAP, Reply::wanted};
        case NPUSHMEM_ATOMIC_COMPARE_SWAP: return UcxAtomic{UCP_ATOMIC_OP_CSWAP, Reply::wanted};
        default: return std::nullopt;
    }
}

// Parses lines such as "# resource 1 : md 1 dev 1 flags -- tcp/eth0"; each flag is a letter or a dash.
std::vector<std::string> transports_of(std::string_view context_info) {
    constexpr std::string_view begin = " flags ";
    constexpr std::size_t flags = 3;
    std::vector<std::string> out;
    while (!context_info.empty()) {
        const std::string_view line = context_info.substr(0, context_info.find('\n'));
        context_info.remove_prefix(std::min(line.size() + 1, context_info.size()));
        const std::size_t at = line.find(begin);
        if (at == std::string_view::npos) continue;
        const std::string_view name = line.substr(std::min(at + begin.size() + flags, line.size()));
        const std::size_t slash = name.find('/');
        if (slash != std::string_view::npos) out.emplace_back(name.substr(0, slash));
    }
    return out;
}

NetworkType network_of(const std::vector<std::string>& transports) {
    constexpr std::array<std::string_view, 5> rdma{"rc_", "dc_", "ud_", "srd", "gga"};
    const auto is_rdma = [&](const std::string& name) {
        return std::any_of(rdma.begin(), rdma.end(), [&](std::string_view prefix) { return name.starts_with(prefix); });
    };
    if (std::any_of(transports.begin(), transports.end(), is_rdma)) return NetworkType::rdma;
    const bool has_tcp = std::find(transports.begin(), transports.end(), "tcp") != transports.end();
    return has_tcp ? NetworkType::tcp : NetworkType::unknown;
}

std::string info_of(ucp_context_h context) {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* const stream = ::open_memstream(&text, &bytes);
    if (stream == nullptr) return {};
    ucp_context_print_info(context, stream);
    std::string out = std::fclose(stream) == 0 ? std::string(text, bytes) : std::string();
    std::free(text);
    return out;
}

namespace {

struct ReleaseConfig {
    void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ReleaseConfig>;

Status set_config(const Config& config, const char* name, const std::string& value) {
    if (value.empty()) return {};
    const ucs_status_t done = ucp_config_modify(config.get(), name, value.c_str());
    return done == UCS_OK ? Status{} : failure(fmt::format("UCX_{}={}", name, value).c_str(), done);
}

// Peers get network addresses only (WorkerTable::address), so UCX never uses its shared memory. Without it UCX
// allocates no segments, which would remain as files /dev/shm/ucx_shm_posix_* after a process is killed.
Status leave_out_shared_memory(const Config& config) {
    const ucs_status_t done = ucp_config_modify(config.get(), "SHM_DEVICES", "");
    return done == UCS_OK ? Status{} : failure("UCX_SHM_DEVICES=", done);
}

}  // namespace

Status UcxContext::open(const UcxOptions& options, int npes) {
    ucp_config_t* read = nullptr;
    if (const ucs_status_t done = ucp_config_read(nullptr, nullptr, &read); done != UCS_OK)
        return failure("ucp_config_read", done);
    const Config config(read);
    Status s = set_config(config, "TLS", options.transports);
    if (s.ok()) s = set_config(config, "NET_DEVICES", options.devices);
    if (s.ok()) s = leave_out_shared_memory(config);
    if (!s.ok()) return s;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (options.atomics ? UCP_FEATURE_AMO64 : 0);
    params.estimated_num_eps = static_cast<std::size_t>(npes);
    const ucs_status_t done = ucp_init(&params, config.get(), &context_);
    return done == UCS_OK ? Status{} : failure("ucp_init", done);
}

UcxContext::~UcxContext() {
    if (context_ == nullptr) return;
    for (const auto& [number, memory] : memory_) (void)ucp_mem_unmap(context_, memory);
    ucp_cleanup(context_);
}

Result<network::WireMemory> UcxContext::register_memory(void* base, std::uint64_t bytes) {
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.address = base;
    params.length = bytes;
    params.flags = UCP_MEM_MAP_NONBLOCK;  // a program uses only a small part of its heap
    ucp_mem_h memory = nullptr;
    if (const ucs_status_t done = ucp_mem_map(context_, &params, &memory); done != UCS_OK)
        return failure("ucp_mem_map", done);
    void* packed = nullptr;
    std::size_t length = 0;
    if (const ucs_status_t done = ucp_rkey_pack(context_, memory, &packed, &length); done != UCS_OK) {
        (void)ucp_mem_unmap(context_, memory);
        return failure("ucp_rkey_pack", done);
    }
    const auto* const key = static_cast<const std::byte*>(packed);
    network::WireMemory out{++last_number_, Bytes(key, key + length)};
    ucp_rkey_buffer_release(packed);
    memory_.emplace(out.number, memory);
    return out;
}

void UcxContext::deregister_memory(std::uint64_t number) {
    const auto found = memory_.find(number);
    if (found == memory_.end()) return;
    (void)ucp_mem_unmap(context_, found->second);
    memory_.erase(found);
}

}  // namespace npushmem::ucx
