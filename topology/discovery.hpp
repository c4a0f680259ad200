// Where a Machine comes from: the running system or a file in hwloc's XML format. hwloc itself stays behind this
// header.
#pragma once

#include <cstdint>
#include <string>

#include "npushmem/plugin/status.hpp"
#include "topology/machine.hpp"

namespace npushmem::topology {

// cpus: cores and NUMA only, without a look at caches and the PCI tree (reading it costs about 2 ms per PCI device on a
// virtual machine). devices: everything.
enum class Detail : std::uint8_t { cpus, devices };

// The machine this process runs on, as far as its cgroup lets it see. Fails with Code::system.
Result<Machine> discover(Detail detail = Detail::devices);

// A machine saved by save_machine() or by `lstopo file.xml` (hwloc 2). Fails with Code::config when the file is missing
// or unreadable, when it is not a topology, and when an annotation is wrong; the message names the file, the object and
// the value. Beyond what hwloc writes, these annotations are understood:
//   of a NIC   <info name="Port1Rate" value="200"/>     gigabits per second of a port (N from 1)
//              <info name="Port1State" value="4"/>      4 is active, anything else down (hwloc writes it for verbs)
//   of a PCI device, a bridge, a NUMA node or a package
//              <info name="NpushmemNpus" value="0,1"/>  the emulated NPUs of these numbers sit here; if any is placed,
//                                                       all from 0 to the last are, each once
Result<Machine> discover_from_xml(const std::string& path);

// Writes this machine, or the one in `topo_file`, as hwloc XML with the annotations above, for discover_from_xml and
// for every other user of hwloc. An existing file is replaced. Fails with Code::config when the file cannot be written.
Status save_machine(const std::string& topo_file, const std::string& path);

// discover_from_xml(topo_file), or discover(detail) when topo_file (the value of NPUSHMEM_TOPO_FILE) is empty.
Result<Machine> machine_of(const std::string& topo_file, Detail detail = Detail::devices);

}  // namespace npushmem::topology
