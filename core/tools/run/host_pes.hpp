// Which PEs of a job on several hosts are one host's: a pure function.
#pragma once

#include "core/tools/run/options.hpp"

namespace npushmem::run {

// A host's PEs are evenly spaced in the job's numbering.
struct Numbering {
    int first = 0;
    int step = 1;

    [[nodiscard]] int of(int index) const { return first + index * step; }
};

struct HostPes {
    Numbering numbering;
    int count = 0;
};

// Needs 0 <= host < hosts <= npes. Dealt as emulated_host_of deals PEs.
HostPes pes_of_host(int host, int hosts, int npes, MapBy map_by);

}  // namespace npushmem::run
