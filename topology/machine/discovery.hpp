// SPDX-License-Identifier: BSD-3-Clause
// Reads a Machine from the running system or from a file in hwloc's XML format. hwloc_discovery.cpp hides hwloc.
#pragma once

#include <cstdint>
#include <string>

#include "npushmem/plugin/status.hpp"
#include "topology/machine/machine.hpp"

namespace npushmem::topology {

// cpus: cores and NUMA nodes only, without caches, the PCI tree (which costs about 2 ms per PCI device on a virtual
// machine) and hwloc's plugins (7 to 12 ms). devices: everything.
enum class Detail : std::uint8_t { cpus, devices };

// The machine this process runs on, as far as its cgroup allows. Fails with Code::system. With Detail::cpus it sets an
// environment variable of hwloc for a moment: no other thread may use the environment meanwhile.
Result<Machine> discover(Detail detail = Detail::devices);

// A machine saved by save_machine() or by `lstopo file.xml` (hwloc 2). Fails with Code::config when the file is missing
// or unreadable, when it is not a topology, and when an annotation is wrong; the message names the file, the object and
// the value. In addition to hwloc's own attributes it reads these annotations:
//   of a NIC   <info name="Port1Rate" value="200"/>     gigabits per second of a port (numbers start at 1)
//              <info name="Port1State" value="4"/>      4 is active, anything else down (hwloc writes it for verbs)
//   of a PCI device, a bridge, a NUMA node or a package
//              <info name="NpushmemNpus" value="0,1"/>  the emulated NPUs with these numbers are here; a file that
//                                                       places one NPU places all from 0 to the last, each once
Result<Machine> discover_from_xml(const std::string& path);

// Writes this machine, or the one in `topo_file`, as hwloc XML with the annotations above. Replaces an existing file.
// Fails with Code::config when the file cannot be written.
Status save_machine(const std::string& topo_file, const std::string& path);

// discover_from_xml(topo_file), or discover(detail) when topo_file (the value of NPUSHMEM_TOPO_FILE) is empty.
Result<Machine> machine_of(const std::string& topo_file, Detail detail = Detail::devices);

// Fails with Code::config when the file does not exist or cannot be read.
Status check_topology_file(const std::string& path);

// The version of hwloc that this program was compiled with, and the one that it loaded; different major versions do not
// work together.
struct HwlocVersions {
    unsigned built_major = 0;
    unsigned built_minor = 0;
    unsigned loaded_major = 0;
    unsigned loaded_minor = 0;
};
HwlocVersions hwloc_versions();

// A hash of the file's content, independent of its path.
std::uint64_t hash_of_topology_file(const std::string& path);

}  // namespace npushmem::topology
