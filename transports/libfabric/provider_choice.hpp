// SPDX-License-Identifier: BSD-3-Clause
// Selects libfabric's provider: the user's choice, or the fastest available one.
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

// The maximum size of a message in bytes. Data transfers are not messages.
inline constexpr std::size_t max_message_bytes = rxm_buffer_bytes;

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

struct ProviderRequest {
    std::string provider = "auto";
    std::string domain;    // empty: any
    bool atomics = false;  // use the provider's atomics
    int npes = 1;          // of the job
};

struct ChosenProvider {
    InfoPtr info;
    network::Delivery delivery = network::Delivery::on_completion;
    bool atomics = false;  // use the provider's atomics
    std::string note;      // for people: the choice, and why faster providers were rejected
};

// Queries libfabric for a provider. The error says why it is unavailable.
using ProviderQuery =
    std::function<Result<ChosenProvider>(const std::string& provider, const ProviderRequest& request)>;
// Uses the fields of the request that apply to any provider.
Result<ChosenProvider> query_provider(const std::string& provider, const ProviderRequest& request);

// The error lists all providers that were tried.
Result<ChosenProvider> choose_provider(const ProviderRequest& request, const ProviderQuery& query);

// Makes libfabric's provider ofi_rxm allocate only the memory that this transport needs. While an object of this class
// exists, the environment contains the variables that limit it. libfabric reads them at its first use in a
// process and has no function to set them. Variables that are already set keep their values; if all are set, as
// npushmem-run does for its PEs, this class does not change the environment. Otherwise no other thread may read or
// change the environment meanwhile (see README.md).
class ScopedRxmEnvironment {
public:
    explicit ScopedRxmEnvironment(int npes);
    ScopedRxmEnvironment(const ScopedRxmEnvironment&) = delete;
    ScopedRxmEnvironment& operator=(const ScopedRxmEnvironment&) = delete;
    ~ScopedRxmEnvironment();

private:
    std::vector<std::string> names_;  // of the variables that this object has set
};

}  // namespace npushmem::libfabric
