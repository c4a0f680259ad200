#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the XML files of this folder: synthetic machines in hwloc's format, small enough to read.

They follow public descriptions of server shapes, with fewer processors than the real ones (two cores per NUMA node):
  switch-pairs.xml            two sockets, four PCIe switches; two accelerators and two NICs share each switch
                              (the shape of common 8 + 8 training servers)
  nics-on-one-socket.xml      two sockets, two accelerators on each, both NICs on the first; the firmware reports NUMA
                              distances
  cascaded-switches.xml       one socket; a switch below a switch, so that PIX and PXB differ; a NIC with two ports
  flat-vm.xml                 a virtual machine: everything directly on one bus
  no-nic.xml                  a virtual machine with two accelerators and no network device
  network-only.xml            one socket, two host bridges, one Ethernet interface on each, no verbs device
  port-down.xml               like flat-vm.xml, with one of the two NICs down
  one-nic.xml                 a virtual machine with four accelerators and one NIC
  dgx-a100.xml                DGX A100: two sockets of four NUMA nodes, on every second node a switch with two
                              accelerators and two 200 Gb/s ports (NVIDIA DGX A100 User Guide, system topology)
  dgx-h100.xml                DGX H100: two sockets, eight switches, each with one accelerator and one 400 Gb/s port
                              (NVIDIA DGX H100/H200 User Guide, network connections)
  dgx-h100-port-failed.xml    the same with one port without a link
  hgx-4-nics.xml              an HGX A100 board in a server with four NICs: two accelerators and one NIC per switch
                              (reference designs for HGX A100 8-GPU servers with one NIC for two GPUs)
  atlas-800-a2.xml            like an Atlas 800 A2 training server: four sockets of two NUMA nodes, an NPU on each node, and
                              its own 200 Gb/s RoCE port beside it; the NPUs' mesh is no PCI tree but an annotation
                              (Atlas 800T A2 user guide, hardware overview)
  sixteen-accelerators.xml    like a DGX-2: two sockets, each with four switches of two accelerators and one 100 Gb/s NIC
                              (NVIDIA DGX-2 User Guide, PCIe topology); threads of cores are off
  sixteen-ports.xml           the same with two 200 Gb/s NICs on each switch, one for each accelerator
  npus-by-file.xml            one socket with two NICs, and no accelerator: annotations say where emulated NPUs sit
  mixed-speeds.xml            one socket with three equally near NICs of 400, 200 and 100 Gb/s, six accelerators
Run it in this folder after a change; the files are kept beside it.
"""
from xml.sax.saxutils import quoteattr

ACCELERATOR = ("1200", "1234:0001")
RDMA_NIC = ("0207", "15b3:1021")
ETHERNET = ("0200", "1af4:1041")


class Writer:
    def __init__(self):
        self.lines = []
        self.depth = 1
        self.gp = 0

    def open(self, kind, /, **attributes):
        self.gp += 1
        attributes["gp_index"] = self.gp
        text = "".join(f" {key}={quoteattr(str(value))}" for key, value in attributes.items())
        self.lines.append("  " * self.depth + f'<object type="{kind}"{text}>')
        self.depth += 1
        return self.gp

    def info(self, name, value):
        self.lines.append("  " * self.depth + f"<info name={quoteattr(name)} value={quoteattr(str(value))}/>")

    def close(self):
        self.depth -= 1
        self.lines.append("  " * self.depth + "</object>")


def mask(bits):
    return f"0x{sum(1 << bit for bit in bits):08x}"


def sets(cpus, nodes):
    return dict(cpuset=mask(cpus), complete_cpuset=mask(cpus), nodeset=mask(nodes), complete_nodeset=mask(nodes))


class Machine:
    """sockets: for each a function that writes the I/O children of its package, or a list of such functions, one for
    each of the package's NUMA nodes. threads: of a core. hccs: groups of NPUs that are linked with each other."""

    def __init__(self, name, sockets, distances=None, threads=2, hccs=None):
        self.w = Writer()
        self.name = name
        self.threads = threads
        self.node_gps = []
        self.nodes_of = [list(s) if isinstance(s, list) else [s] for s in sockets]
        nodes = range(sum(len(nodes) for nodes in self.nodes_of))
        cpus = range(2 * threads * len(nodes))
        self.w.open("Machine", os_index=0, **sets(cpus, nodes), allowed_cpuset=mask(cpus), allowed_nodeset=mask(nodes))
        self.w.info("HostName", name)
        if hccs:
            self.w.info("NpushmemHccs", hccs)
        first = 0
        for index, writers in enumerate(self.nodes_of):
            self.socket(index, range(first, first + len(writers)), writers)
            first += len(writers)
        self.w.close()
        self.distances = distances

    def cpus_of(self, nodes):
        return [cpu for node in nodes for cpu in range(2 * self.threads * node, 2 * self.threads * (node + 1))]

    def socket(self, index, nodes, writers):
        w = self.w
        w.open("Package", os_index=index, **sets(self.cpus_of(nodes), nodes))
        w.info("CPUModel", "Synthetic CPU")
        for node, write_io in zip(nodes, writers):
            if len(writers) > 1:  # what gives the devices of one node a place of their own
                w.open("Group", **sets(self.cpus_of([node]), [node]), kind=0, subkind=0)
            self.node(node, write_io)
            if len(writers) > 1:
                w.close()
        w.close()

    def node(self, node, write_io):
        w = self.w
        cpus = self.cpus_of([node])
        self.node_gps.append(w.open("NUMANode", os_index=node, **sets(cpus, [node]), local_memory=64 << 30))
        w.close()
        w.open("L3Cache", **sets(cpus, [node]), cache_size=32 << 20, depth=3, cache_linesize=64, cache_associativity=16,
               cache_type=0)
        for core in range(2):
            threads = [cpus[0] + core + 2 * thread for thread in range(self.threads)]
            w.open("Core", os_index=2 * node + core, **sets(threads, [node]))
            for thread in threads:
                w.open("PU", os_index=thread, **sets([thread], [node]))
                w.close()
            w.close()
        w.close()
        write_io(w)

    def text(self):
        out = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
               '<topology version="2.0">', *self.w.lines]
        if self.distances:
            out += distances_element(self.node_gps, self.distances)
        return "\n".join(out + ["</topology>", ""])


def distances_element(gps, matrix):
    indexes = " ".join(str(i) for i in range(len(gps))) + " "
    values = " ".join(str(value) for row in matrix for value in row) + " "
    count = len(gps)
    return [f'  <distances2 type="NUMANode" nbobjs="{count}" kind="5" name="NUMALatency" indexing="os">',
            f'    <indexes length="{len(indexes)}">{indexes}</indexes>',
            f'    <u64values length="{len(values)}">{values}</u64values>', "  </distances2>"]


def host_bridge(w, first, last, depth=0):
    w.open("Bridge", bridge_type="0-1", depth=depth, bridge_pci=f"0000:[{first:02x}-{last:02x}]")


def bridge(w, address, first, last, depth, speed=32.0):
    w.open("Bridge", bridge_type="1-1", depth=depth, bridge_pci=f"0000:[{first:02x}-{last:02x}]",
           pci_busid=f"0000:{address}", pci_type="0604 [1000:c010] [0000:0000] b0", pci_link_speed=f"{speed:.6f}")


def device(w, address, kind, speed=32.0):
    w.open("PCIDev", pci_busid=f"0000:{address}", pci_type=f"{kind[0]} [{kind[1]}] [0000:0000] 00",
           pci_link_speed=f"{speed:.6f}")


def accelerator(w, address, speed=32.0):
    device(w, address, ACCELERATOR, speed)
    w.close()


def rdma(w, address, name, ports=((4, 200),), speed=32.0):
    device(w, address, RDMA_NIC, speed)
    w.open("OSDev", name=name, osdev_type=3)
    for number, (state, rate) in enumerate(ports, 1):
        w.info(f"Port{number}State", state)
        w.info(f"Port{number}Rate", rate)
    w.close()
    w.close()


def ethernet(w, address, name):
    device(w, address, ETHERNET, 0.0)
    w.open("OSDev", name=name, osdev_type=2)
    w.info("Address", "02:00:00:00:00:01")
    w.close()
    w.close()


def paired_switch(w, bus, first_nic):
    """Root port, a switch with four downstream ports, two accelerators and two NICs below."""
    host_bridge(w, bus, bus + 6)
    bridge(w, f"{bus:02x}:01.0", bus + 1, bus + 6, 1)
    bridge(w, f"{bus + 1:02x}:00.0", bus + 2, bus + 6, 2)
    for slot in range(4):
        bridge(w, f"{bus + 2:02x}:{slot:02x}.0", bus + 3 + slot, bus + 3 + slot, 3)
        if slot < 2:
            accelerator(w, f"{bus + 3 + slot:02x}:00.0")
        else:
            rdma(w, f"{bus + 3 + slot:02x}:00.0", f"mlx5_{first_nic + slot - 2}")
        w.close()
    for _ in range(3):
        w.close()


def socket_of_pairs(bus, first_nic):
    def write(w):
        paired_switch(w, bus, first_nic)
        paired_switch(w, bus + 0x10, first_nic + 2)
    return write


def root_port(w, host, bus, write_device):
    bridge(w, f"{host:02x}:{bus - host:02x}.0", bus, bus, 1)
    write_device(f"{bus:02x}:00.0")
    w.close()


def first_socket(w):
    host_bridge(w, 0x00, 0x04)
    root_port(w, 0x00, 0x01, lambda at: accelerator(w, at))
    root_port(w, 0x00, 0x02, lambda at: rdma(w, at, "mlx5_0"))
    w.close()
    host_bridge(w, 0x10, 0x14)
    root_port(w, 0x10, 0x11, lambda at: accelerator(w, at))
    root_port(w, 0x10, 0x12, lambda at: rdma(w, at, "mlx5_1"))
    w.close()


def second_socket(w):
    host_bridge(w, 0x80, 0x84)
    root_port(w, 0x80, 0x81, lambda at: accelerator(w, at))
    root_port(w, 0x80, 0x82, lambda at: accelerator(w, at))
    w.close()


def cascade(w):
    host_bridge(w, 0x00, 0x0a)
    bridge(w, "00:01.0", 0x01, 0x0a, 1)
    bridge(w, "01:00.0", 0x02, 0x0a, 2)  # outer switch: upstream, three downstream
    bridge(w, "02:00.0", 0x03, 0x03, 3)
    rdma(w, "03:00.0", "mlx5_0", ports=((4, 100), (4, 100)))
    w.close()
    bridge(w, "02:01.0", 0x04, 0x04, 3)
    accelerator(w, "04:00.0")
    w.close()
    bridge(w, "02:02.0", 0x05, 0x0a, 3)
    bridge(w, "05:00.0", 0x06, 0x0a, 4)  # inner switch: upstream, two downstream
    bridge(w, "06:00.0", 0x07, 0x07, 5)
    accelerator(w, "07:00.0")
    w.close()
    bridge(w, "06:01.0", 0x08, 0x08, 5)
    rdma(w, "08:00.0", "mlx5_1", ports=((4, 200),))
    for _ in range(6):
        w.close()


def flat(second_state):
    def write(w):
        host_bridge(w, 0x00, 0x00)
        for slot in range(4):
            accelerator(w, f"00:{4 + slot:02x}.0", 0.0)
        rdma(w, "00:08.0", "mlx5_0", ports=((4, 100),), speed=0.0)
        rdma(w, "00:09.0", "mlx5_1", ports=((second_state, 100),), speed=0.0)
        w.close()
    return write


def two_accelerators(w):
    host_bridge(w, 0x00, 0x00)
    accelerator(w, "00:04.0", 0.0)
    accelerator(w, "00:05.0", 0.0)
    w.close()


def network_only(w):
    for bus, name in ((0x00, "eth0"), (0x20, "eth1")):
        host_bridge(w, bus, bus)
        ethernet(w, f"{bus:02x}:03.0", name)
        w.close()


def switch(w, bus, devices):
    """Root port and a switch, one downstream port for each of `devices`, functions that take an address."""
    last = bus + 2 + len(devices)
    host_bridge(w, bus, last)
    bridge(w, f"{bus:02x}:01.0", bus + 1, last, 1)
    bridge(w, f"{bus + 1:02x}:00.0", bus + 2, last, 2)
    for slot, write_device in enumerate(devices):
        bridge(w, f"{bus + 2:02x}:{slot:02x}.0", bus + 3 + slot, bus + 3 + slot, 3)
        write_device(f"{bus + 3 + slot:02x}:00.0")
        w.close()
    for _ in range(3):
        w.close()


def with_switches(first_bus, *switches, speed=32.0):
    """I/O of a socket or node: switches, each a list of "acc" and of (NIC's number, state, rate)."""
    def write(w):
        for index, devices in enumerate(switches):
            switch(w, first_bus + 0x8 * index, [device_writer(w, device, speed) for device in devices])
    return write


def device_writer(w, what, speed):
    if what == "acc":
        return lambda at: accelerator(w, at, speed)
    number, state, rate = what
    return lambda at: rdma(w, at, f"mlx5_{number}", ports=((state, rate),), speed=speed)


def nothing(_):
    pass


def dgx_a100_socket(bus, nic):
    return [nothing, with_switches(bus, ["acc", "acc", (nic, 4, 200), (nic + 1, 4, 200)]),
            nothing, with_switches(bus + 0x10, ["acc", "acc", (nic + 2, 4, 200), (nic + 3, 4, 200)])]


def dgx_h100(failed=None):
    def socket(bus, nics):
        return with_switches(bus, *[["acc", (nic, 1 if nic == failed else 4, 400)] for nic in nics], speed=64.0)
    return [socket(0x00, range(0, 4)), socket(0x80, range(4, 8))]


def hgx_socket(bus, nic):
    return with_switches(bus, ["acc", "acc", (nic, 4, 200)], ["acc", "acc", (nic + 1, 4, 200)])


def atlas_node(node):
    """An NPU and its port, two functions behind one root port."""
    def write(w):
        bus = 0x20 * node
        host_bridge(w, bus, bus + 1)
        bridge(w, f"{bus:02x}:00.0", bus + 1, bus + 1, 1)
        accelerator(w, f"{bus + 1:02x}:00.0")
        rdma(w, f"{bus + 1:02x}:00.1", f"roce{node}", ports=((4, 200),))
        w.close()
        w.close()
    return write


def sixteen_socket(bus, nic):
    return with_switches(bus, *[["acc", "acc", (nic + i, 4, 100)] for i in range(4)])


def sixteen_ports_socket(bus, nic):
    return with_switches(bus, *[["acc", "acc", (nic + 2 * i, 4, 200), (nic + 2 * i + 1, 4, 200)] for i in range(4)])


def mixed_speeds(w):
    host_bridge(w, 0x00, 0x00)
    for slot in range(6):
        accelerator(w, f"00:{4 + slot:02x}.0", 0.0)
    for slot, rate in enumerate((100, 200, 400)):
        rdma(w, f"00:{0x10 + slot:02x}.0", f"mlx5_{slot}", ports=((4, rate),), speed=0.0)
    w.close()


def one_nic(w):
    host_bridge(w, 0x00, 0x00)
    for slot in range(4):
        accelerator(w, f"00:{4 + slot:02x}.0", 0.0)
    rdma(w, "00:08.0", "mlx5_0", ports=((4, 100),), speed=0.0)
    w.close()


def npus_by_file(w):
    host_bridge(w, 0x00, 0x02)
    root_port(w, 0x00, 0x01, lambda at: rdma(w, at, "mlx5_0"))
    w.close()
    host_bridge(w, 0x10, 0x12)
    w.info("NpushmemNpus", "1,2")
    root_port(w, 0x10, 0x11, lambda at: rdma(w, at, "mlx5_1"))
    w.close()
    host_bridge(w, 0x20, 0x20)
    device(w, "20:00.0", ("0108", "1234:0002"))
    w.info("NpushmemNpus", "0")
    w.close()
    w.close()


NUMA_OF_FOUR_PER_SOCKET = [[10 if i == j else 12 if i // 4 == j // 4 else 32 for j in range(8)] for i in range(8)]
NUMA_OF_TWO_PER_SOCKET = [[10 if i == j else 12 if i // 2 == j // 2 else 24 for j in range(8)] for i in range(8)]

MACHINES = [
    Machine("switch-pairs", [socket_of_pairs(0x00, 0), socket_of_pairs(0x80, 4)]),
    Machine("nics-on-one-socket", [first_socket, second_socket], distances=[[10, 21], [21, 10]]),
    Machine("cascaded-switches", [cascade]),
    Machine("flat-vm", [flat(4)]),
    Machine("no-nic", [two_accelerators]),
    Machine("network-only", [network_only]),
    Machine("port-down", [flat(1)]),
    Machine("one-nic", [one_nic]),
    Machine("dgx-a100", [dgx_a100_socket(0x00, 0), dgx_a100_socket(0x80, 4)], distances=NUMA_OF_FOUR_PER_SOCKET),
    Machine("dgx-h100", dgx_h100()),
    Machine("dgx-h100-port-failed", dgx_h100(failed=2)),
    Machine("hgx-4-nics", [hgx_socket(0x00, 0), hgx_socket(0x80, 2)]),
    Machine("atlas-800-a2", [[atlas_node(2 * i), atlas_node(2 * i + 1)] for i in range(4)],
            distances=NUMA_OF_TWO_PER_SOCKET, hccs="0-7"),
    Machine("sixteen-accelerators", [sixteen_socket(0x00, 0), sixteen_socket(0x80, 4)], threads=1,
            hccs="0-7,8-15"),
    Machine("sixteen-ports", [sixteen_ports_socket(0x00, 0), sixteen_ports_socket(0x80, 8)], threads=1,
            hccs="0-7,8-15"),
    Machine("mixed-speeds", [mixed_speeds]),
    Machine("npus-by-file", [npus_by_file]),
]

for machine in MACHINES:
    with open(f"{machine.name}.xml", "w", encoding="utf-8") as file:
        file.write(machine.text())
