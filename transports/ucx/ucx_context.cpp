#include "transports/ucx/ucx_context.hpp"

#include <fmt/format.h>

#include <memory>

#include "transports/ucx/ucx_api.hpp"

namespace npushmem::ucx {
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
