// SPDX-License-Identifier: BSD-3-Clause
// The decision file of host collectives. It defines which algorithm `auto` selects for the barrier of which team, as
// measured on some machine, by which method the other collectives run, and which calls another library serves
// (NPUSHMEM_COLL_LIBRARY).
//
// Text, one rule per line. The first matching rule decides; without one the built-in choice applies:
//
//     # collective  PEs   PEs per node  PEs per core  algorithm
//     barrier       2     *             *             two_proc
//     barrier       3-16  *             0-1           dissemination_k:4
//     barrier       17-   2-            *             hierarchical
//
// A rule with one more field selects a library by the bytes of each member (of reductions: of the result; of a barrier:
// 0): `npushmem`, `npushmem:<method>`, which also selects one of its methods (coll/methods.hpp), or another library.
// Without a matching rule the library of NPUSHMEM_COLL_LIBRARY serves what it supports. A library that does not exist
// is reported at start.
//
//     # collective  PEs   PEs per node  PEs per core  bytes     library
//     broadcast     2-    *             *             0-32767   npushmem
//     alltoall      8     *             2-            65536-    npushmem:pull
//     reduce        *     *             *             *         mpi
//
// Numbers are inclusive ranges: `8`, `2-8`, `17-` (and more), `*` (any); PEs per core may have decimals. `#` begins a
// comment. The collectives are barrier, broadcast, collect, fcollect, alltoall, reduce and reducescatter. npushmem-perf
// tune-barrier writes rules for barriers, npushmem-perf tune-collectives for libraries and methods.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/coll/barrier/algorithms.hpp"
#include "core/coll/methods.hpp"

namespace npushmem::barrier {

struct TuningRange {
    double min = 0;
    double max = std::numeric_limits<double>::infinity();

    [[nodiscard]] bool contains(double value) const { return value >= min && value <= max; }
};

struct TuningRule {
    int line = 0;
    TuningRange members;
    TuningRange per_node;
    TuningRange per_core;
    Plan plan;
};

// Selects the library of a collective, or npushmem's method.
struct LibraryRule {
    int line = 0;
    std::string collective;
    TuningRange members;
    TuningRange per_node;
    TuningRange per_core;
    TuningRange bytes;
    std::string library;
    coll::Method method = coll::Method::automatic;  // of npushmem
};

class Tuning {
public:
    Tuning() = default;  // no rules

    // `name` is for messages. Fails with Code::config; the message has the line and the column of the error.
    static Result<Tuning> parse(std::string_view text, std::string name);
    // Returns no rules for an empty path. Fails with Code::config when the file cannot be read.
    static Result<Tuning> read(const std::string& path);

    // Returns null when no rule matches, or when the first match names an algorithm that cannot serve the team.
    [[nodiscard]] const TuningRule* find(const BarrierSelectionInput& selection_input) const;
    // Returns the first rule that matches a call of `bytes` per member; null when there is none.
    [[nodiscard]] const LibraryRule* find_library(std::string_view collective, double bytes,
                                                  const BarrierSelectionInput& selection_input) const;
    // Returns all that match calls of some size, in their order.
    [[nodiscard]] std::vector<const LibraryRule*> library_rules_for(std::string_view collective,
                                                                    const BarrierSelectionInput& selection_input) const;
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const std::vector<TuningRule>& rules() const { return rules_; }
    [[nodiscard]] const std::vector<LibraryRule>& library_rules() const { return library_rules_; }
    // Equal for equal texts: PEs compare it to check that they will choose alike.
    [[nodiscard]] std::uint64_t hash() const { return hash_; }

private:
    std::string name_;
    std::vector<TuningRule> rules_;
    std::vector<LibraryRule> library_rules_;
    std::uint64_t hash_ = 0;
};

}  // namespace npushmem::barrier
