// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/methods.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace npushmem::coll {

namespace {

constexpr std::array<std::string_view, 9> method_names{"automatic", "lines", "ring",      "push",       "pull",
                                                       "scatter",   "hosts", "published", "partitioned"};

constexpr Method broadcast_methods[] = {Method::ring, Method::push, Method::pull, Method::scatter, Method::hosts};
constexpr Method collect_methods[] = {Method::push, Method::pull, Method::published};
constexpr Method fcollect_methods[] = {Method::lines, Method::push, Method::pull, Method::published, Method::hosts};
constexpr Method alltoall_methods[] = {Method::lines, Method::push, Method::pull, Method::published};
constexpr Method reduce_methods[] = {Method::lines, Method::published, Method::partitioned, Method::hosts};
constexpr Method reduce_scatter_methods[] = {Method::lines, Method::pull};

}  // namespace

std::string_view name_of(Method method) { return method_names.at(static_cast<std::size_t>(method)); }

std::span<const Method> methods_of(std::uint32_t collective) {
    switch (collective) {
        case NPUSHMEM_COLL_BROADCAST: return broadcast_methods;
        case NPUSHMEM_COLL_COLLECT: return collect_methods;
        case NPUSHMEM_COLL_FCOLLECT: return fcollect_methods;
        case NPUSHMEM_COLL_ALLTOALL: return alltoall_methods;
        case NPUSHMEM_COLL_REDUCE: return reduce_methods;
        case NPUSHMEM_COLL_REDUCESCATTER: return reduce_scatter_methods;
        default: return {};
    }
}

Result<Method> method_named(std::uint32_t collective, std::string_view name) {
    std::vector<std::string_view> known;
    for (const Method method : methods_of(collective)) {
        if (name_of(method) == name) return method;
        known.push_back(name_of(method));
    }
    return Status{Code::argument,
                  fmt::format("npushmem has no method \"{}\" for {}; it has: {}", name, collective_names.at(collective),
                              known.empty() ? "none" : fmt::to_string(fmt::join(known, ", ")))};
}

Result<Method> method_named(std::string_view name) {
    for (std::uint32_t collective = 0; collective < collective_count; ++collective)
        if (auto method = method_named(collective, name); method.ok()) return method;
    return Status{Code::argument, fmt::format("npushmem has no method \"{}\" for collectives; it has: {}", name,
                                              fmt::join(method_names.begin() + 1, method_names.end(), ", "))};
}

}  // namespace npushmem::coll
