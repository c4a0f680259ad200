// SPDX-License-Identifier: BSD-3-Clause
// Which PEs share a host: a pure function of the identities that all PEs exchanged.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "npushmem/plugin/transport.h"

namespace npushmem {

// The distribution of PEs over hosts. One host counts as block, and so does a distribution that fits both.
enum class Distribution { block, round_robin, other };
std::string_view name_of(Distribution distribution);

class HostLayout {
public:
    // Hosts are numbered in the order of their lowest PE; PEs keep their order inside a host.
    explicit HostLayout(std::span<const npushmem_host_id> identity_of_pe);

    [[nodiscard]] int npes() const { return static_cast<int>(host_of_.size()); }
    [[nodiscard]] int hosts() const { return static_cast<int>(pes_of_.size()); }
    [[nodiscard]] int host_of(int pe) const { return host_of_[static_cast<std::size_t>(pe)]; }
    // Returns the PE's position among the PEs of its host.
    [[nodiscard]] int local_index(int pe) const { return local_index_[static_cast<std::size_t>(pe)]; }
    [[nodiscard]] std::span<const int> pes_of(int host) const { return pes_of_[static_cast<std::size_t>(host)]; }
    [[nodiscard]] Distribution distribution() const { return distribution_; }
    // Returns whether all hosts have the same number of PEs.
    [[nodiscard]] bool even() const { return even_; }

private:
    [[nodiscard]] bool is_block() const;
    [[nodiscard]] bool is_round_robin() const;

    std::vector<int> host_of_;
    std::vector<int> local_index_;
    std::vector<std::vector<int>> pes_of_;
    Distribution distribution_ = Distribution::block;
    bool even_ = true;
};

}  // namespace npushmem
