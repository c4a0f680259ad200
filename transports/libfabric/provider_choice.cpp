// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/provider_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "core/base/parse.hpp"
#include "core/base/rxm_variables.hpp"

namespace npushmem::libfabric {
namespace {

// The fastest first. Other providers are used on request only, among them shm, which does not leave the host.
constexpr std::array<const char*, 4> by_speed{"cxi", "efa", "verbs;ofi_rxm", "tcp;ofi_rxm"};

// The order in which one message proves the delivery of everything that was posted to the peer before it.
constexpr std::uint64_t full_order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW | FI_ORDER_RAW;

InfoPtr make_hints(const std::string& provider, const ProviderRequest& request, std::uint64_t order) {
    InfoPtr hints(fi_allocinfo());
    if (!hints) return hints;
    hints->caps = FI_MSG | FI_RMA | (request.atomics ? FI_ATOMIC : 0);
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->fabric_attr->prov_name = ::strdup(provider.c_str());
    if (!request.domain.empty()) hints->domain_attr->name = ::strdup(request.domain.c_str());
    return hints;
}

// Prefers an address that other hosts can use.
int usefulness(const fi_info& info) {
    if (info.src_addr == nullptr) return 2;
    const auto* address = static_cast<const sockaddr*>(info.src_addr);
    if (info.addr_format == FI_SOCKADDR_IN) {
        const auto* in = reinterpret_cast<const sockaddr_in*>(address);
        return (ntohl(in->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET ? 0 : 3;
    }
    if (info.addr_format != FI_SOCKADDR_IN6) return 2;
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)) return 0;
    return 2;
}

// Some providers ignore the requested domain.
const fi_info* best_of(const fi_info* list, const std::string& domain) {
    const fi_info* best = nullptr;
    for (const fi_info* info = list; info != nullptr; info = info->next) {
        if (!domain.empty() && domain != info->domain_attr->name) continue;
        if (best == nullptr || usefulness(*info) > usefulness(*best)) best = info;
    }
    return best;
}

std::string domains_of(const fi_info* list) {
    std::set<std::string> names;
    for (const fi_info* info = list; info != nullptr; info = info->next) names.insert(info->domain_attr->name);
    return fmt::format("{}", fmt::join(names, ", "));
}

Result<InfoPtr> query_info(const std::string& provider, const ProviderRequest& request, std::uint64_t order) {
    const InfoPtr hints = make_hints(provider, request, order);
    if (!hints) return Status{Code::memory, "no memory for a libfabric query"};
    fi_info* list = nullptr;
    const ScopedRxmEnvironment limits(request.npes);
    const int failed = fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, hints.get(), &list);
    const InfoPtr owner(list);
    if (failed != 0 || list == nullptr)
        return Status{Code::unreachable, failed == -FI_ENODATA || list == nullptr
                                             ? std::string("not available on this host")
                                             : fmt::format("fi_getinfo: {}", fi_strerror(-failed))};
    const fi_info* const best = best_of(list, request.domain);
    if (best == nullptr)
        return Status{Code::unreachable,
                      fmt::format("domain '{}' does not exist; expected one of: {}", request.domain, domains_of(list))};
    InfoPtr copy(fi_dupinfo(best));
    if (!copy) return Status{Code::memory, "no memory for the result of a libfabric query"};
    return copy;
}

std::string found_text(const fi_info& info) {
    return fmt::format("{} on {}", info.fabric_attr->prov_name, info.domain_attr->name);
}

}  // namespace

Result<ChosenProvider> query_provider(const std::string& provider, const ProviderRequest& request) {
    ChosenProvider out;
    // Where the target's software carries out atomics, a later write may overtake them, whatever order is promised.
    auto ordered =
        request.atomics ? Result<InfoPtr>(Status{Code::unsupported, ""}) : query_info(provider, request, full_order);
    // tcp keeps the order as its connection does. A provider with weaker order does not match the query.
    out.delivery = ordered.ok() ? network::Delivery::in_order : network::Delivery::on_completion;
    out.atomics = request.atomics;
    auto found = ordered.ok() ? std::move(ordered) : query_info(provider, request, FI_ORDER_SAS);
    ProviderRequest plain = request;
    plain.atomics = false;
    if (!found.ok() && request.atomics && query_info(provider, plain, FI_ORDER_SAS).ok())
        return Status{Code::unsupported,
                      "it has no atomic operations, which NPUSHMEM_LIBFABRIC_NATIVE_ATOMICS=always requires"};
    if (!found.ok()) return found.status();
    out.info = std::move(found).value();
    out.note = found_text(*out.info);
    return out;
}

Result<ChosenProvider> choose_provider(const ProviderRequest& request, const ProviderQuery& query) {
    const std::string wanted(trimmed(request.provider));
    if (!wanted.empty() && lowercase(wanted) != "auto") {
        auto found = query(wanted, request);
        if (found.ok()) {
            found.value().note += " (set by NPUSHMEM_LIBFABRIC_PROVIDER)";
            return found;
        }
        return Status{Code::config,
                      fmt::format("NPUSHMEM_LIBFABRIC_PROVIDER='{}': {}; fi_info lists the providers of this host",
                                  wanted, found.status().message())};
    }
    std::string tried;
    for (const char* provider : by_speed) {
        auto found = query(provider, request);
        if (found.ok()) {
            if (!tried.empty()) found.value().note += fmt::format(" (no faster provider:{})", tried);
            return found;
        }
        tried += fmt::format("{} {}: {}", tried.empty() ? "" : ";", provider, found.status().message());
    }
    return Status{Code::unreachable,
                  fmt::format("libfabric has no provider for this host; tried{}; fi_info lists the providers, "
                              "NPUSHMEM_LIBFABRIC_PROVIDER and NPUSHMEM_LIBFABRIC_DOMAIN select one",
                              tried)};
}

ScopedRxmEnvironment::ScopedRxmEnvironment(int npes) {
    for (const auto& [name, value] : rxm_variables(npes)) {
        if (std::getenv(name) != nullptr || ::setenv(name, std::to_string(value).c_str(), 0) != 0) continue;
        names_.emplace_back(name);
    }
}

ScopedRxmEnvironment::~ScopedRxmEnvironment() {
    for (const std::string& name : names_) (void)::unsetenv(name.c_str());
}

}  // namespace npushmem::libfabric
