// Which of libfabric's providers to use: the user's, or the fastest that is here; and why the others are not.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/rxm_variables.hpp"
#include "npushmem/plugin/status.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::libfabric {

// In bytes. Transfers of data are no messages.
inline constexpr std::size_t max_message_bytes = rxm_buffer_bytes;

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

struct ProviderRequest {
    std::string provider = "auto";
    std::string domain;    // empty: any
    bool atomics = false;  // its own are to be used
};

struct ChosenProvider {
    InfoPtr info;
    network::Delivery delivery = network::Delivery::on_completion;
    bool atomics = false;  // its own are to be used
    std::string note;      // for people: what was chosen, and why nothing faster
};

// What libfabric offers of a provider; the error says why nothing.
using ProviderQuery =
    std::function<Result<ChosenProvider>(const std::string& provider, const ProviderRequest& request)>;
// Of the request, what is asked of any provider.
Result<ChosenProvider> query_provider(const std::string& provider, const ProviderRequest& request);

// The error lists everything that was tried.
Result<ChosenProvider> choose_provider(const ProviderRequest& request, const ProviderQuery& query);

// Makes libfabric's provider ofi_rxm allocate as many buffers as this transport needs.

// While one exists, the environment holds the variables of ofi_rxm that bound its buffers. libfabric reads them at its
// first use in a process, and has no function to set them. Variables that are set already stay as they are: then this
// class does not change the environment. That is so in every PE of npushmem-run. Elsewhere no other thread may read or
// change the environment meanwhile, as README.md says to users.
class ScopedRxmEnvironment {
public:
    ScopedRxmEnvironment();
    ScopedRxmEnvironment(const ScopedRxmEnvironment&) = delete;
    ScopedRxmEnvironment& operator=(const ScopedRxmEnvironment&) = delete;
    ~ScopedRxmEnvironment();

private:
    std::vector<std::string> names_;  // of the variables that were not set before
};

}  // namespace npushmem::libfabric
