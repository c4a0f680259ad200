// Which CPUs a PE may use: a pure function of the machine's units.
#pragma once

#include <vector>

#include "core/tools/run/options.hpp"

namespace npushmem::run {

using CpuList = std::vector<int>;

// `units`: the CPUs of every core, hardware thread or NUMA node, in the machine's order; not empty. The result has one
// list for each PE; an empty list means "not bound".
//  - core, hwthread, numa: PE i gets unit i, starting over when they are used up
//  - share: neighbouring PEs get neighbouring, disjoint parts, whose sizes differ by one unit at most; with more PEs
//  than
//    units as for core
//  - automatic: share with at least as many units as PEs, otherwise none
std::vector<CpuList> binding_plan(Bind bind, const std::vector<CpuList>& units, int npes);

// "0-3,8": for people.
std::string format_cpus(const CpuList& cpus);

}  // namespace npushmem::run
