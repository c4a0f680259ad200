// SPDX-License-Identifier: BSD-3-Clause
// What no start of a job can avoid, without npushmem's runtime: each process loads the libraries of the plugins, maps
// memory that all share, writes its part of it, and passes a few barriers. Beside it, an empty job shows what
// the runtime adds; beside empty processes, it shows how near to these a start can come.
#pragma once

#include <string>
#include <vector>

#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

class BareJob {
public:
    // Creates the memory of so many processes; those that this one starts inherit its descriptor.
    static Result<BareJob> create(int processes);
    [[nodiscard]] int descriptor() const { return memory_.get(); }

    // The whole life of one of the processes. Collective.
    static Status take_part(int descriptor, int processes, const std::vector<std::string>& plugin_files);

private:
    explicit BareJob(FileDescriptor memory) : memory_(std::move(memory)) {}

    FileDescriptor memory_;
};

}  // namespace npushmem::perf
