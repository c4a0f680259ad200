// SPDX-License-Identifier: BSD-3-Clause
// What the runtime knows about every PE for as long as the job lasts, in 16 bytes for each: the identity of its
// process, and the number of the traits that it has in common with others. The PEs of a host can share one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/liveness.hpp"
#include "core/runtime/start_exchange.hpp"
#include "core/runtime/static_variables.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

class PeTable {
public:
    struct Traits {
        npushmem_host_id host{};
        std::uint64_t process_space = 0;  // see CommonRecord
        std::string host_name;
        StaticVariablesRecord statics;
        bool shares_process = false;  // another PE runs in the PE's process

        [[nodiscard]] bool sees_process_of(const Traits& other) const {
            return host.machine == other.host.machine && process_space == other.process_space;
        }
    };

    PeTable() = default;
    explicit PeTable(const PeRecords& records);

    [[nodiscard]] int npes() const { return npes_; }
    [[nodiscard]] ProcessId process(int pe) const { return {at(pe).process, at(pe).process_start}; }
    [[nodiscard]] const Traits& traits(int pe) const { return traits_[at(pe).traits]; }

    // The 16 bytes of all PEs, equal on all PEs.
    [[nodiscard]] std::span<const std::byte> view() const {
        return shared_.empty() ? std::as_bytes(std::span(pes_)) : shared_;
    }
    // Keeps a copy of view() that outlives the last use of this, instead of its own.
    void use_copy(std::span<const std::byte> copy) {
        shared_ = copy;
        pes_ = std::vector<Entry>();
    }

private:
    struct Entry {
        std::int32_t process;
        std::uint32_t traits;
        std::uint64_t process_start;
    };
    [[nodiscard]] const Entry& at(int pe) const { return reinterpret_cast<const Entry*>(view().data())[pe]; }

    int npes_ = 0;
    std::vector<Entry> pes_;
    std::span<const std::byte> shared_;
    std::vector<Traits> traits_;
};

}  // namespace npushmem
