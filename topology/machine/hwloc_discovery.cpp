// SPDX-License-Identifier: BSD-3-Clause
// Converts hwloc's object tree into a Machine. The only file that uses hwloc.
#include <hwloc.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <tuple>

#include "core/base/hash.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/streams.hpp"
#include "topology/machine/annotations.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/machine/machine.hpp"
#include "topology/machine/sysfs_nic.hpp"

namespace npushmem::topology {
namespace {

struct TopologyDeleter {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

constexpr double bits_per_gigabyte = 8e9;

CpuSet to_cpus(hwloc_const_bitmap_t set) {
    CpuSet cpus;
    if (set == nullptr || hwloc_bitmap_weight(set) < 0) return cpus;  // absent, or infinite
    for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
        cpus.push_back(static_cast<unsigned>(cpu));
    }
    return cpus;
}

std::string text_of(const char* text) { return text == nullptr ? std::string{} : std::string{text}; }

std::uint64_t to_bits_per_second(float gigabytes_per_second) {
    return gigabytes_per_second > 0 ? static_cast<std::uint64_t>(gigabytes_per_second * bits_per_gigabyte) : 0;
}

// Translates a topology of hwloc into a Machine. One class, although it has more than twenty methods: each kind of
// object has one short method that reads it, and all of them fill the same Machine.
class HwlocReader {
public:
    explicit HwlocReader(hwloc_topology_t topology) : topology_(topology) {}

    Result<Machine> read() {
        machine_.host_name = text_of(hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology_), "HostName"));
        read_packages();
        read_numa_nodes();
        read_numa_distances();
        read_cores();
        read_caches();
        read_devices(hwloc_get_root_obj(topology_), std::nullopt);
        sort_devices();
        store_npu_sites();
        if (!first_error_.ok()) return first_error_;
        return std::move(machine_);
    }

private:
    template <class Visit>
    void for_each(hwloc_obj_type_t type, Visit visit) {
        for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology_, type, object)) != nullptr;) {
            visit(object);
        }
    }

    // Keeps the first error.
    void record_error(const std::string& of, const Status& status) {
        if (first_error_.ok()) first_error_ = status.within(of);
    }

    void read_npus(hwloc_obj_t object, const NpuSite& site) {
        for (unsigned i = 0; i < object->infos_count; ++i) {
            if (object->infos[i].name != npus_annotation) continue;
            record_error("annotation", npus_.place(object->infos[i].value, site));
        }
    }

    void store_npu_sites() {
        auto sites = npus_.sites();
        record_error("annotation", sites.status());
        if (sites.ok()) machine_.npu_sites = std::move(sites).value();
    }

    void read_packages() {
        for_each(HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t object) {
            read_npus(object, {std::nullopt, numa_of(object)});
            machine_.packages.push_back(
                {object->os_index, text_of(hwloc_obj_get_info_by_name(object, "CPUModel")), to_cpus(object->cpuset)});
        });
    }

    void read_caches() {
        for (const auto type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
            for_each(type, [&](hwloc_obj_t object) {
                machine_.caches.push_back(
                    {object->attr->cache.depth, object->attr->cache.size, to_cpus(object->cpuset)});
            });
        }
    }

    void read_numa_nodes() {
        for_each(HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) {
            read_npus(object, {std::nullopt, object->logical_index});
            machine_.numa_nodes.push_back(
                {object->os_index, object->attr->numanode.local_memory, package_of(object), to_cpus(object->cpuset)});
        });
    }

    void read_cores() {
        for_each(HWLOC_OBJ_CORE, [&](hwloc_obj_t object) {
            machine_.cores.push_back({package_of(object), numa_of(object), to_cpus(object->cpuset)});
        });
        if (!machine_.cores.empty()) return;
        // Some virtual machines have threads without cores; each then counts as a core of its own.
        for_each(HWLOC_OBJ_PU, [&](hwloc_obj_t object) {
            machine_.cores.push_back({package_of(object), numa_of(object), to_cpus(object->cpuset)});
        });
    }

    void read_numa_distances() {
        unsigned count = 1;
        hwloc_distances_s* found = nullptr;
        if (hwloc_distances_get_by_name(topology_, "NUMALatency", &count, &found, 0) != 0 || count == 0) return;
        if (found->nbobjs == machine_.numa_nodes.size()) copy_distances(*found);
        hwloc_distances_release(topology_, found);
    }

    void copy_distances(const hwloc_distances_s& from) {
        const std::size_t nodes = from.nbobjs;
        machine_.numa_distances.assign(nodes, std::vector<std::uint32_t>(nodes));
        for (std::size_t i = 0; i < nodes; ++i) {
            for (std::size_t j = 0; j < nodes; ++j) {
                machine_.numa_distances[from.objs[i]->logical_index][from.objs[j]->logical_index] =
                    static_cast<std::uint32_t>(from.values[i * nodes + j]);
            }
        }
    }

    std::optional<std::size_t> package_of(hwloc_obj_t object) const {
        const auto* package = hwloc_get_ancestor_obj_by_type(topology_, HWLOC_OBJ_PACKAGE, object);
        if (package == nullptr) return std::nullopt;
        return package->logical_index;
    }

    // The NUMA node of the object or of its nearest non-I/O ancestor; none when there are several.
    std::optional<std::size_t> numa_of(hwloc_obj_t object) const {
        const auto* place = hwloc_get_non_io_ancestor_obj(topology_, object);
        if (place == nullptr || hwloc_bitmap_weight(place->nodeset) != 1) return std::nullopt;
        const auto* node =
            hwloc_get_numanode_obj_by_os_index(topology_, static_cast<unsigned>(hwloc_bitmap_first(place->nodeset)));
        if (node == nullptr) return std::nullopt;
        return node->logical_index;
    }

    // Depth first, so that parents precede children.
    void read_devices(hwloc_obj_t object, std::optional<std::size_t> pci_parent) {
        for (auto* child = object->io_first_child; child != nullptr; child = child->next_sibling) {
            if (child->type == HWLOC_OBJ_OS_DEVICE) {
                read_nic(child, pci_parent);
                read_devices(child, pci_parent);
            } else {
                machine_.pci.push_back(to_pci(child, pci_parent));
                const std::size_t index = machine_.pci.size() - 1;
                add_if_accelerator(index);
                read_npus(child, {index, machine_.pci[index].numa});
                read_devices(child, index);
            }
        }
        for (auto* child = object->first_child; child != nullptr; child = child->next_sibling) {
            read_devices(child, pci_parent);
        }
    }

    PciObject to_pci(hwloc_obj_t object, std::optional<std::size_t> parent) const {
        PciObject out;
        out.parent = parent;
        out.numa = numa_of(object);
        if (object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
            const auto& bus = object->attr->bridge.downstream.pci;
            out.kind = PciKind::host_bridge;
            out.address = fmt::format("{:04x}:[{:02x}-{:02x}]", bus.domain, bus.secondary_bus, bus.subordinate_bus);
            return out;
        }
        const bool bridge = object->type == HWLOC_OBJ_BRIDGE;
        const auto& pci = bridge ? object->attr->bridge.upstream.pci : object->attr->pcidev;
        out.kind = bridge ? PciKind::bridge : PciKind::device;
        out.address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
        out.class_id = pci.class_id;
        out.vendor = pci.vendor_id;
        out.device = pci.device_id;
        out.link_bits_per_second = to_bits_per_second(pci.linkspeed);
        return out;
    }

    void add_if_accelerator(std::size_t index) {
        const auto& object = machine_.pci[index];
        if (object.kind != PciKind::device || !is_accelerator(object.class_id, object.vendor)) return;
        machine_.accelerators.push_back({index, object.numa});
    }

    void read_nic(hwloc_obj_t object, std::optional<std::size_t> pci) {
        const auto type = object->attr->osdev.type;
        if (type != HWLOC_OBJ_OSDEV_OPENFABRICS && type != HWLOC_OBJ_OSDEV_NETWORK) return;
        Nic nic;
        nic.name = text_of(object->name);
        nic.kind = type == HWLOC_OBJ_OSDEV_OPENFABRICS ? NicKind::rdma : NicKind::network;
        nic.pci = pci;
        nic.numa = numa_of(object);
        nic.ports = read_ports(object);
        if (hwloc_topology_is_thissystem(topology_)) read_port_states(nic, "/sys");
        machine_.nics.push_back(std::move(nic));
    }

    std::vector<NicPort> read_ports(hwloc_obj_t object) {
        std::vector<NicPort> ports;
        for (unsigned number = 1;; ++number) {
            NicPort port{number, PortState::unknown, 0};
            const bool has_state = read_annotation(object, state_annotation(number), parse_port_state, port.state);
            const bool has_rate =
                read_annotation(object, rate_annotation(number), parse_port_rate, port.bits_per_second);
            if (!has_state && !has_rate) break;
            ports.push_back(port);
        }
        if (ports.empty()) ports.emplace_back();
        return ports;
    }

    // True when the NIC has an annotation of this name.
    template <class Parse, class Value>
    bool read_annotation(hwloc_obj_t nic, const std::string& name, Parse parse, Value& into) {
        const char* text = hwloc_obj_get_info_by_name(nic, name.c_str());
        if (text == nullptr) return false;
        const auto value = parse(text);
        record_error(fmt::format("NIC {}: {}", text_of(nic->name), name), value.status());
        if (value.ok()) into = value.value();
        return true;
    }

    void sort_devices() {
        std::sort(machine_.nics.begin(), machine_.nics.end(), [&](const Nic& a, const Nic& b) {
            const auto key_a = std::make_tuple(a.kind, address_of(a.pci));
            const auto key_b = std::make_tuple(b.kind, address_of(b.pci));
            return key_a != key_b ? key_a < key_b : natural_less(a.name, b.name);
        });
        std::sort(machine_.accelerators.begin(), machine_.accelerators.end(),
                  [&](const auto& a, const auto& b) { return address_of(a.pci) < address_of(b.pci); });
    }

    // Devices without a PCI address sort last.
    std::string address_of(std::optional<std::size_t> pci) const { return pci ? machine_.pci[*pci].address : "~"; }

    hwloc_topology_t topology_;
    Machine machine_;
    NpuSites npus_;
    Status first_error_;  // of the first wrong annotation
};

// Keeps only the objects that a Machine needs. It needs groups: in a package with several NUMA nodes they are the
// parents of the devices of one node.
void set_filters(hwloc_topology_t topology, Detail detail) {
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    if (detail == Detail::devices) {
        for (const auto cache : {HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE})
            hwloc_topology_set_type_filter(topology, cache, HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    }
    // These components start drivers of displays and accelerators, or run on every processor in turn, for facts that
    // sysfs already gives. "pci" (a plug-in that uses libpciaccess, which leaks a little memory) reports the same as
    // hwloc's own sysfs reader. A missing component is not an error.
    for (const char* component : {"gl", "opencl", "cuda", "nvml", "rsmi", "levelzero", "x86", "pci"}) {
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    }
}

// While it exists, a new topology loads no plugins of hwloc. The first one otherwise loads all of them (on Debian with
// OpenCL, X, libxml2 and ICU), before set_filters can exclude any. hwloc offers only an environment variable for this.
class PluginsDisabled {
public:
    PluginsDisabled() {
        for (const char* chosen : {variable, "HWLOC_XMLFILE"}) {
            if (std::getenv(chosen) != nullptr) return;  // the user has chosen plugins, or a file that may need one
        }
        disabled_ = ::setenv(variable, "", 1) == 0;
    }
    ~PluginsDisabled() {
        if (disabled_) ::unsetenv(variable);
    }
    PluginsDisabled(const PluginsDisabled&) = delete;
    PluginsDisabled& operator=(const PluginsDisabled&) = delete;

private:
    static constexpr const char* variable = "HWLOC_PLUGINS_PATH";
    bool disabled_ = false;
};

Result<Topology> make_topology(Detail detail) {
    std::optional<PluginsDisabled> disabled;
    if (detail == Detail::cpus) disabled.emplace();
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) {
        return Status{Code::memory, fmt::format("hwloc cannot create a topology: {}", std::strerror(errno))};
    }
    disabled.reset();
    Topology topology(raw);
    set_filters(raw, detail);
    return topology;
}

Status not_a_topology(const std::string& path) {
    const HwlocVersions versions = hwloc_versions();
    return {Code::config,
            fmt::format("\"{}\" is not a topology that hwloc {}.{} can read; create one on that machine with "
                        "`lstopo file.xml`",
                        path, versions.loaded_major, versions.loaded_minor)};
}

void warn_missing_devices(Machine& machine) {
    if (!machine.pci.empty()) return;
    machine.notes.emplace_back(
        "no PCI device is visible: a container may hide /sys/bus/pci; distances to NICs are unknown");
}

Result<Topology> load_this_machine(Detail detail) {
    auto topology = make_topology(detail);
    if (topology.ok() && hwloc_topology_load(topology.value().get()) != 0)
        return Status{Code::system, fmt::format("hwloc cannot discover this machine: {}", std::strerror(errno))};
    return topology;
}

Result<Topology> load_file(const std::string& path) {
    if (auto readable = check_topology_file(path); !readable.ok()) return readable;
    auto topology = make_topology(Detail::devices);
    if (!topology.ok()) return topology;
    auto* raw = topology.value().get();
    if (hwloc_topology_set_xml(raw, path.c_str()) != 0 || hwloc_topology_load(raw) != 0) return not_a_topology(path);
    return topology;
}

void annotate(hwloc_obj_t nic, const std::string& name, const std::string& value) {
    if (hwloc_obj_get_info_by_name(nic, name.c_str()) == nullptr)
        (void)hwloc_obj_add_info(nic, name.c_str(), value.c_str());
}

void annotate(hwloc_obj_t nic, const NicPort& port) {
    if (port.state != PortState::unknown) annotate(nic, state_annotation(port.number), state_text(port.state));
    if (port.bits_per_second != 0) annotate(nic, rate_annotation(port.number), rate_text_of(port.bits_per_second));
}

// Adds the port states and rates that the model has and hwloc lacks.
void annotate_nics(hwloc_topology_t topology, const Machine& machine) {
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_osdev(topology, object)) != nullptr;) {
        for (const auto& nic : machine.nics) {
            if (nic.name != text_of(object->name)) continue;
            for (const auto& port : nic.ports) annotate(object, port);
        }
    }
}

}  // namespace

Result<Machine> discover(Detail detail) {
    auto topology = load_this_machine(detail);
    if (!topology.ok()) return topology.status();
    auto machine = HwlocReader(topology.value().get()).read();
    if (!machine.ok()) return machine;
    machine.value().source = "this machine";
    machine.value().devices_known = detail == Detail::devices;
    if (machine.value().devices_known) warn_missing_devices(machine.value());
    return machine;
}

Result<Machine> discover_from_xml(const std::string& path) {
    auto topology = load_file(path);
    if (!topology.ok()) return topology.status();
    auto machine = HwlocReader(topology.value().get()).read();
    if (!machine.ok()) return machine.status().within(fmt::format("topology file \"{}\"", path));
    machine.value().source = path;
    machine.value().identity = hash_of_topology_file(path);
    return machine;
}

Status save_machine(const std::string& topo_file, const std::string& path) {
    auto topology = topo_file.empty() ? load_this_machine(Detail::devices) : load_file(topo_file);
    if (!topology.ok()) return topology.status();
    auto* raw = topology.value().get();
    const auto machine = HwlocReader(raw).read();
    if (!machine.ok()) return machine.status();
    annotate_nics(raw, machine.value());
    errno = 0;
    if (hwloc_topology_export_xml(raw, path.c_str(), 0) == 0) return {};
    return {Code::config, fmt::format("cannot write the topology to \"{}\": {}", path,
                                      errno == 0 ? "hwloc reports no reason" : std::strerror(errno))};
}

Result<Machine> machine_of(const std::string& topo_file, Detail detail) {
    if (topo_file.empty()) return discover(detail);
    auto machine = discover_from_xml(topo_file);
    if (!machine.ok()) return machine.status().within("NPUSHMEM_TOPO_FILE");
    return machine;
}

HwlocVersions hwloc_versions() {
    const unsigned loaded = hwloc_get_api_version();  // 0x00MMmmpp, as HWLOC_API_VERSION
    constexpr unsigned built = HWLOC_API_VERSION;
    return {built >> 16, built >> 8 & 0xff, loaded >> 16, loaded >> 8 & 0xff};
}

Status check_topology_file(const std::string& path) {
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) {
        return {Code::config, fmt::format("topology file \"{}\" is a directory; name an XML file", path)};
    }
    errno = 0;
    if (std::ifstream(path).good()) return {};
    return {Code::config, fmt::format("cannot read topology file \"{}\": {}", path, std::strerror(errno))};
}

std::uint64_t hash_of_topology_file(const std::string& path) {
    const auto content = read_whole_file(path);
    return hash_bytes(content.ok() ? content.value() : "");
}

}  // namespace npushmem::topology
