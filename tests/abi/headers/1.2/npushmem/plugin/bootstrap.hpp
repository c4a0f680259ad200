// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap as a C++ class; bootstrap.h has the contract of every call.
//
// To write one: derive from Bootstrap, give the class a static
//     Result<std::unique_ptr<Bootstrap>> open(const Host&, const npushmem_bootstrap_params&)
// and, if it can make ids, a static
//     Status get_uniqueid(const Host&, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES>)
// and, if it can recognise that a process was started for it, a static
//     int recognise(const Host&, const npushmem_bootstrap_params&, std::string& why)
// and, if it can stop waiting for a rank of such an id, a static
//     Status rank_ended(const Host&, std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES>, int rank, int nranks,
//                       const std::string& how)
// then put one NPUSHMEM_EXPORT_BOOTSTRAP(...), or NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(...) with configuration rows
// (bootstrap_export.hpp), at the end of one source file. A function that throws fails with Code::system, or with
// Code::memory for std::bad_alloc, and the exception's what() as its message.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class Bootstrap {
public:
    Bootstrap() = default;
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;
    virtual ~Bootstrap() = default;

    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int nranks() const = 0;
    // receive.size() == nranks() * send.size(); all ranks give the same number of bytes, else the job fails. Once this
    // or barrier has failed, all later calls fail with the same cause and do not wait.
    virtual Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) = 0;
    virtual Status barrier() = 0;
    virtual void abort(const std::string& /*reason*/) {}
    // Never blocks.
    virtual Status check() { return {}; }
};

}  // namespace npushmem
