// SPDX-License-Identifier: BSD-3-Clause
// PEs of one machine that do not see each other's processes, because they run in different PID namespaces (containers).
// Where a Unix socket joins them, they count as one host and share memory whose descriptor passes over it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/descriptor_passing.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

class ProcessSpaces {
public:
    ProcessSpaces() = default;

    // Collective over all PEs, which give equal `records`. The PEs of a machine, user and emulated host whose process
    // spaces differ connect to the first of them; host.space of those that succeed becomes that of the first one. It
    // stays for the others, for instance with NPUSHMEM_SHARE_BETWEEN_CONTAINERS=0. If no process spaces differ, nothing
    // is exchanged.
    static Result<ProcessSpaces> join(Bootstrap& bootstrap, PeRecords& records, int my_pe, const Settings& settings);

    // For the host's first PE: sends the descriptor to the PEs of its host in other process spaces.
    Status send(int descriptor) { return offer_ ? offer_->send(descriptor) : Status{}; }
    // Returns whether this PE receives the descriptor so. It does after a collective that follows the call of `send`.
    [[nodiscard]] bool receives() const { return call_.has_value(); }
    [[nodiscard]] Result<FileDescriptor> receive() const { return call_->receive(); }

private:
    std::optional<DescriptorOffer> offer_;
    std::optional<DescriptorCall> call_;
};

}  // namespace npushmem
