// Which of libfabric's providers to use: the user's, or the fastest that is here; and why the others are not.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

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

}  // namespace npushmem::libfabric
