// SPDX-License-Identifier: BSD-3-Clause
// Which PEs share a host: a pure function of the identities that all PEs exchanged.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/liveness.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

// The distribution of PEs over hosts. One host counts as block, and so does a distribution that fits both.
enum class Distribution { block, round_robin, other };
std::string_view name_of(Distribution distribution);

class HostLayout {
public:
    // Hosts are numbered in the order of their lowest PE; PEs keep their order inside a host.
    explicit HostLayout(std::span<const npushmem_host_id> identity_of_pe);
    // All PEs run on one host.
    static HostLayout of_one_host(int npes);

    [[nodiscard]] int npes() const { return npes_; }
    [[nodiscard]] int hosts() const { return hosts_; }
    [[nodiscard]] int host_of(int pe) const;
    // Returns the PE's position among the PEs of its host.
    [[nodiscard]] int local_index(int pe) const;
    // Valid while this object lives.
    [[nodiscard]] PeRange pes_of(int host) const;
    [[nodiscard]] Distribution distribution() const { return distribution_; }
    // Returns whether all hosts have the same number of PEs.
    [[nodiscard]] bool even() const { return even_; }

private:
    int npes_;
    int hosts_ = 0;
    Distribution distribution_ = Distribution::other;
    bool even_ = true;
    std::vector<int> first_of_;  // with Distribution::block: the first PE of each host, and the number of PEs
    // With Distribution::other. The other distributions need no memory for each PE.
    std::vector<int> host_of_;
    std::vector<int> local_index_;
    std::vector<std::vector<int>> pes_of_;
};

}  // namespace npushmem
