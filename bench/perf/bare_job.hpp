// SPDX-License-Identifier: BSD-3-Clause
// What no start and end of a job can avoid, without npushmem's runtime: each process loads the libraries of the
// plugins, maps memory that all share, writes its part of it, shares pages of its variables, passes a few barriers,
// makes the variables private again and removes the memory. Beside it, an empty job shows what the runtime adds; beside
// empty processes that npushmem-run started too, it shows what these operations cost.
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
