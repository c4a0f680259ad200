// SPDX-License-Identifier: BSD-3-Clause
// A library of collectives as a C++ class; collectives.h has the contract of every call.
//
// To write one: derive from Collectives, give the class a static
//     Result<std::unique_ptr<Collectives>> open(const Host&, const npushmem_collectives_params&)
// and put one NPUSHMEM_EXPORT_COLLECTIVES(...), or NPUSHMEM_EXPORT_COLLECTIVES_WITH_CONFIG(...) with configuration rows
// (collectives_export.hpp), at the end of one source file. A function that throws fails with Code::system, or with
// Code::memory for std::bad_alloc, and the exception's what() as its message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "npushmem/plugin/collectives.h"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class Collectives {
public:
    Collectives() = default;
    Collectives(const Collectives&) = delete;
    Collectives& operator=(const Collectives&) = delete;
    virtual ~Collectives() = default;

    // The library with its version, for reports; constant.
    [[nodiscard]] virtual const std::string& description() const = 0;
    // The set of types of a reduction, bit NPUSHMEM_COLL_x; 1 or 0 for other collectives.
    [[nodiscard]] virtual std::uint64_t supports(std::uint32_t collective, std::uint32_t operation) const = 0;
    // Returns the team's id.
    virtual Result<std::uint64_t> create_team(const npushmem_coll_team& team) = 0;
    virtual void destroy_team(std::uint64_t id) = 0;
    // Code::again, without a message, with `request` set: the call is not yet complete. Never waits.
    virtual Status start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) = 0;
    // Code::again, without a message: not yet complete. Never waits.
    virtual Status test(std::uint64_t request) = 0;
    virtual void abandon(std::uint64_t /*request*/) {}
};

// Gathers equal numbers of bytes from all members, for create_team. receive.size() == team.size * send.size().
inline Status gather_from_members(const npushmem_coll_team& team, std::span<const std::byte> send,
                                  std::span<std::byte> receive) {
    ErrorBuffer error;
    const std::int32_t code = team.allgather(team.context, send.data(), send.size(), receive.data(), &error);
    return status_from(code, error);
}

}  // namespace npushmem
