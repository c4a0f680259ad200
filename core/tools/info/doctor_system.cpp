// SPDX-License-Identifier: BSD-3-Clause
// The checks of the system: memory, CPUs, limits, kernel and devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "core/tools/info/doctor.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::info {

namespace {

std::string size_or_unlimited(std::uint64_t bytes) { return bytes == unlimited ? "unlimited" : format_size(bytes); }

std::string number_or_unlimited(std::uint64_t value) {
    return value == unlimited ? "unlimited" : fmt::format("{}", value);
}

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > unlimited / b ? unlimited : a * b;
}

// Bytes of the symmetric heaps of all PEs.
std::uint64_t heaps_of(const Examined& examined) {
    return saturating_product(examined.settings.symmetric_size.value, static_cast<std::uint64_t>(examined.pes));
}

std::string heaps_text(const Examined& examined) {
    return fmt::format("NPUSHMEM_SYMMETRIC_SIZE is {} for each of {}",
                       format_size(examined.settings.symmetric_size.value),
                       topology::counted(static_cast<std::size_t>(examined.pes), "PE"));
}

// The size at which the heaps of all PEs fit into `room`, in MiB.
std::string smaller_heap(const Examined& examined, std::uint64_t room) {
    constexpr std::uint64_t mebibyte = 1 << 20;
    const std::uint64_t each = room / static_cast<std::uint64_t>(std::max(examined.pes, 1)) / mebibyte;
    return fmt::format("NPUSHMEM_SYMMETRIC_SIZE={}M", std::max<std::uint64_t>(each, 1));
}

const char* memory_limit_of(const Examined& examined) {
    return examined.system.memory.available.limited_by_group ? " (by the control group's memory.max)" : "";
}

bool has_verbs(const Examined& examined) {
    return std::any_of(examined.plugins.begin(), examined.plugins.end(), [](const PluginEntry& entry) {
        return entry.found.kind == PluginKind::transport && entry.found.name == "verbs" && entry.usable();
    });
}

bool selects_verbs(const Examined& examined) {
    return lowercase(examined.settings.remote_transport) == "verbs" ||
           examined.settings.transports.find("verbs") != std::string::npos;
}

// Whether a job of several hosts would use verbs here.
bool uses_verbs(const Examined& examined) {
    return has_verbs(examined) && !examined.system.rdma.empty() &&
           (selects_verbs(examined) ||
            preview_remote_transport(examined.settings, examined.plugins, examined.system).name.find("verbs") !=
                std::string::npos);
}

}  // namespace

Check check_shared_memory(const Examined& examined) {
    const std::string& failure = examined.system.kernel.shared_memory_failure;
    if (failure.empty())
        return {"shared memory",
                Severity::ok,
                "processes of this user can map each other's memory (memfd, /proc/<pid>/fd)",
                "PEs of one host",
                {}};
    return {"shared memory", Severity::problem, failure, "every job: PEs of one host share their heaps",
            "allow memfd_create and access to /proc/<pid>/fd: in containers, change the seccomp profile and the mount "
            "options of /proc"};
}

Check check_heap_memory(const Examined& examined) {
    const AvailableMemory& memory = examined.system.memory.available;
    Check check{"memory",
                Severity::ok,
                fmt::format("{} of {} available{}; {}", format_size(memory.available), format_size(memory.total),
                            memory_limit_of(examined), heaps_text(examined)),
                "allocations from the symmetric heap, which commit memory",
                {}};
    if (heaps_of(examined) <= memory.available) return check;
    check.severity = Severity::note;
    check.affects = "allocations fail before the heaps of all PEs are full; start-up does not";
    check.remedy =
        memory.limited_by_group
            ? fmt::format("raise memory.max of the control group, or set {}", smaller_heap(examined, memory.available))
            : fmt::format("start fewer PEs, or set {}", smaller_heap(examined, memory.available));
    return check;
}

Check check_heap_folder(const Examined& examined) {
    const std::string& folder = examined.settings.heap_dir;
    const FolderFacts& facts = examined.system.heap_dir;
    if (folder.empty())
        return {
            "heap", Severity::ok, "in anonymous memory (memfd); /dev/shm does not limit it", "the symmetric heap", {}};
    Check check{"heap",
                Severity::ok,
                fmt::format("in an unnamed file in '{}', {} of {} free; {}", folder, format_size(facts.free),
                            format_size(facts.total), heaps_text(examined)),
                "the symmetric heap",
                {}};
    if (!facts.exists || !facts.writable) {
        check.severity = Severity::problem;
        check.found = fmt::format("NPUSHMEM_HEAP_DIR names '{}', which is {}", folder,
                                  facts.exists ? "not writable" : "no folder");
        check.affects = "every job: it fails at start";
        check.remedy = "name a folder that this user can write, or unset NPUSHMEM_HEAP_DIR";
    } else if (heaps_of(examined) > facts.free) {
        check.severity = Severity::note;
        check.affects = "allocations fail before the heaps of all PEs are full";
        check.remedy = fmt::format("enlarge the file system (mount -o remount,size=...), or set {}",
                                   smaller_heap(examined, facts.free));
    }
    return check;
}

Check check_shm(const Examined& examined) {
    const FolderFacts& facts = examined.system.shm;
    const bool usable = facts.exists && facts.writable && facts.free >= (1 << 16);
    if (usable)
        return {"/dev/shm",
                Severity::ok,
                fmt::format("{} of {} free; a table of used NICs of some KiB is there, no heap",
                            format_size(facts.free), format_size(facts.total)),
                "distribution of NICs among jobs",
                {}};
    return {"/dev/shm", Severity::note,
            !facts.exists     ? "no such folder"
            : !facts.writable ? "not writable"
                              : fmt::format("{} of {} free", format_size(facts.free), format_size(facts.total)),
            "jobs on this host do not see which NICs other jobs use",
            "mount -t tmpfs -o mode=1777 tmpfs /dev/shm; or set NPUSHMEM_NIC_ARBITRATION=0"};
}

Check check_address_space(const Examined& examined) {
    const SystemFacts& system = examined.system;
    const std::uint64_t needed = heaps_of(examined);
    const std::uint64_t limit = std::min(system.file_size.soft, system.address_space.soft);
    Check check{"address space",
                Severity::ok,
                fmt::format("limit of a process {}, of a file {}", size_or_unlimited(system.address_space.soft),
                            size_or_unlimited(system.file_size.soft)),
                "every PE maps the heaps of all PEs of its host",
                {}};
    if (limit == unlimited || needed < limit) return check;
    check.severity = Severity::problem;
    const bool of_file = system.file_size.soft <= needed;
    check.found =
        fmt::format("a {} may have {}; {}", of_file ? "file" : "process",
                    format_size(of_file ? system.file_size.soft : system.address_space.soft), heaps_text(examined));
    check.affects = "every job: it fails at start";
    check.remedy =
        fmt::format("ulimit {} unlimited; or set {}", of_file ? "-f" : "-v", smaller_heap(examined, limit / 2));
    return check;
}

Check check_overcommit(const Examined& examined) {
    const MemoryFacts& memory = examined.system.memory;
    if (!memory.overcommit) return {"overcommit", Severity::ok, "mode unknown", "allocations from the heap", {}};
    if (*memory.overcommit != 2)
        return {"overcommit",
                Severity::ok,
                fmt::format("mode {}: reserved address space costs nothing", *memory.overcommit),
                "allocations from the heap",
                {}};
    const std::uint64_t left = memory.commit_limit > memory.committed ? memory.commit_limit - memory.committed : 0;
    Check check{"overcommit",
                Severity::ok,
                fmt::format("mode 2: {} of {} left to commit; {}", format_size(left), format_size(memory.commit_limit),
                            heaps_text(examined)),
                "allocations from the heap, and stacks of kernels, count against CommitLimit",
                {}};
    if (heaps_of(examined) <= left) return check;
    check.severity = Severity::note;
    check.remedy = fmt::format("sysctl vm.overcommit_memory=0; or set {}", smaller_heap(examined, left));
    return check;
}

Check check_huge_pages(const Examined& examined) {
    const Settings& settings = examined.settings;
    Check check{"huge pages", Severity::ok, {}, "speed of large transfers and of access at random", {}};
    if (examined.system.heap_dir.has_huge_pages) {
        check.found = "NPUSHMEM_HEAP_DIR is a mount of huge pages";
        return check;
    }
    if (settings.huge_pages && examined.system.memory.commits_huge_pages) {
        check.found = "the heap uses transparent ones where it commits 2 MiB or more at once";
        return check;
    }
    const std::string& mode = examined.system.memory.huge_pages;
    const bool used = mode == "always" || mode == "within_size" || mode == "force";
    check.found = fmt::format("{}; transparent huge pages of shared memory: {}; the heap uses {} pages",
                              settings.huge_pages ? "Linux gave no huge page on request" : "NPUSHMEM_HUGE_PAGES is 0",
                              mode.empty() ? "unknown" : mode, used ? "huge" : "small");
    if (used) return check;
    const std::string mode_remedy = "echo within_size > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
    if (!settings.huge_pages)
        check.remedy = "unset NPUSHMEM_HUGE_PAGES";
    else
        check.remedy =
            examined.system.kernel.at_least(6, 1) ? mode_remedy : "use Linux 6.1 or later; or " + mode_remedy;
    return check;
}

Check check_cpus(const Examined& examined) {
    const double cores = examined.system.usable_cores();
    Check check{"CPUs",
                Severity::ok,
                fmt::format("{} for {}", topology::counted(static_cast<std::size_t>(examined.system.cpus), "CPU"),
                            topology::counted(static_cast<std::size_t>(examined.pes), "PE")),
                "waits and barriers",
                {}};
    if (examined.pes <= cores) return check;
    check.severity = Severity::note;
    check.found =
        fmt::format("{:.3g} usable CPUs (taskset and control groups included) for {} PEs", cores, examined.pes);
    check.affects = "PEs share CPUs: waits yield and sleep, and a barrier takes a scheduler turn for each PE";
    check.remedy = fmt::format("npushmem-run -n {}; or widen the affinity mask (taskset -p $$ shows it)",
                               std::max(1, static_cast<int>(cores)));
    return check;
}

Check check_cpu_quota(const Examined& examined) {
    const SystemFacts& system = examined.system;
    if (system.quota == 0 || system.quota >= system.cpus)
        return {"CPU quota", Severity::ok, "no control group limits the CPU time", "waits and barriers", {}};
    return {"CPU quota", Severity::note,
            fmt::format("a control group grants {:.3g} of {} CPUs (cpu.max)", system.quota, system.cpus),
            "PEs that poll use up the quota, and the kernel then stops all of them for the rest of the period",
            fmt::format("raise cpu.max of the control group (docker --cpus, systemd CPUQuota), or start at most {} PEs",
                        std::max(1, static_cast<int>(system.quota)))};
}

Check check_open_files(const Examined& examined) {
    const ResourceLimit& limit = examined.system.open_files;
    // The launcher needs two pipes and a process descriptor for each PE; a PE needs sockets to some others.
    const std::uint64_t needed = 64 + 3 * static_cast<std::uint64_t>(examined.pes);
    Check check{"open files",
                Severity::ok,
                fmt::format("limit {}, at most {}; npushmem-run raises it", number_or_unlimited(limit.soft),
                            number_or_unlimited(limit.hard)),
                "pipes and sockets of npushmem-run and of PEs",
                {}};
    if (limit.hard >= needed) return check;
    check.severity = Severity::problem;
    check.found = fmt::format("limit at most {}; {} PEs need about {}", limit.hard, examined.pes, needed);
    // The limit binds root and holders of CAP_SYS_RESOURCE, too, until they raise it.
    check.remedy = examined.system.raises_limits
                       ? fmt::format("ulimit -n {}", 4 * needed)
                       : "as root, 'nofile 65536' in /etc/security/limits.d, or LimitNOFILE= of the service";
    return check;
}

Check check_processes(const Examined& examined) {
    const ResourceLimit& limit = examined.system.processes;
    // A PE has its program's thread, and at most three threads of the runtime and of transports.
    const std::uint64_t needed = 4 * static_cast<std::uint64_t>(examined.pes);
    Check check{"processes",
                Severity::ok,
                fmt::format("limit {}", number_or_unlimited(limit.soft)),
                "processes and threads of this user",
                {}};
    if (examined.system.ignores_process_limit && limit.soft != unlimited)
        check.found += ", which this process may exceed (root, CAP_SYS_RESOURCE or CAP_SYS_ADMIN)";
    if (examined.system.ignores_process_limit || limit.soft >= needed) return check;
    check.severity = Severity::problem;
    check.found = fmt::format("limit {}; {} PEs need about {}", limit.soft, examined.pes, needed);
    check.remedy =
        fmt::format("ulimit -u {}", limit.hard >= needed ? std::to_string(4 * needed) : "unlimited, as root");
    return check;
}

Check check_kernel(const Examined& examined) {
    const KernelFacts& kernel = examined.system.kernel;
    if (kernel.pidfd_failure.empty())
        return {"kernel", Severity::ok, fmt::format("Linux {}, with pidfd_open", kernel.release), "npushmem-run", {}};
    // Other launchers do not need it.
    return {"kernel", examined.system.launchers.empty() ? Severity::problem : Severity::note,
            fmt::format("Linux {}: pidfd_open fails: {}", kernel.release, kernel.pidfd_failure),
            "npushmem-run, which watches its processes by it",
            kernel.at_least(5, 3) ? "allow pidfd_open in the container's seccomp profile"
                                  : "use Linux 5.3 or later, or another launcher (srun, mpirun)"};
}

// Opening /proc/<pid>/fd/<n> is a read access, which Yama does not restrict.
Check check_ptrace(const Examined& examined) {
    const auto& scope = examined.system.ptrace_scope;
    return {"ptrace scope",
            Severity::ok,
            fmt::format("{}; npushmem neither traces processes nor copies their memory",
                        scope ? fmt::format("kernel.yama.ptrace_scope is {}", *scope) : "no Yama"),
            "nothing",
            {}};
}

Check check_rdma(const Examined& examined) {
    const SystemFacts& system = examined.system;
    std::vector<std::string> devices;
    bool refused = false;
    bool usable = false;
    for (const RdmaDevice& device : system.rdma) {
        devices.push_back(device.reason.empty() ? device.name
                                                : fmt::format("{} ({}: {})", device.name, device.file, device.reason));
        (device.reason.empty() ? usable : refused) = true;
    }
    Check check{"RDMA devices",
                Severity::ok,
                devices.empty() ? "none" : fmt::format("{}", fmt::join(devices, ", ")),
                "transport verbs, between hosts",
                {}};
    if (devices.empty() && selects_verbs(examined)) {
        check.severity = Severity::problem;
        check.affects = "every job: transport verbs is selected and needs a device";
        check.remedy =
            "NPUSHMEM_REMOTE_TRANSPORT=auto; or load the driver of the NIC (modprobe mlx5_ib, rdma_rxe, ...)";
    } else if (refused) {
        check.severity = selects_verbs(examined) && !usable ? Severity::problem : Severity::note;
        check.remedy =
            "grant read and write access: chmod a+rw /dev/infiniband/uverbs*, or add the devices to the "
            "container (docker --device=/dev/infiniband)";
    }
    return check;
}

Check check_locked_memory(const Examined& examined) {
    const SystemFacts& system = examined.system;
    const std::uint64_t soft = system.locked_memory.soft;
    Check check{"locked memory",
                Severity::ok,
                fmt::format("limit {}{}", size_or_unlimited(soft),
                            system.ignores_locked_limit ? ", which this process may exceed (CAP_IPC_LOCK)" : ""),
                "memory that transport verbs registers",
                {}};
    if (!uses_verbs(examined)) {
        check.found += "; without RDMA between hosts, nothing locks memory";
        return check;
    }
    if (system.ignores_locked_limit || soft == unlimited || soft >= examined.settings.symmetric_size.value)
        return check;
    // The heap is registered in chunks at their first use: jobs start, and those that use less never reach the limit.
    check.severity = Severity::note;
    check.found += fmt::format("; the heap of a PE is {}", format_size(examined.settings.symmetric_size.value));
    check.affects = "jobs of several hosts over verbs: registration fails when a PE has used this much of its heap";
    check.remedy =
        "'* - memlock unlimited' in /etc/security/limits.d, or LimitMEMLOCK=infinity of the service that "
        "starts jobs (slurmd, sshd); then log in again";
    return check;
}

Check check_userfaultfd(const Examined& examined) {
    const KernelFacts& kernel = examined.system.kernel;
    Check check{"userfaultfd", Severity::ok, {}, "the cache of registered buffers of transport verbs", {}};
    if (kernel.userfaultfd_failure.empty() && kernel.at_least(5, 18)) {
        check.found = "available";
        return check;
    }
    check.found = kernel.userfaultfd_failure.empty() ? fmt::format("of Linux {}, too old", kernel.release)
                                                     : kernel.userfaultfd_failure;
    if (!uses_verbs(examined)) {
        check.found += "; nothing needs it without RDMA between hosts";
        return check;
    }
    check.severity = Severity::note;
    check.affects = "every transfer over verbs from memory outside of the heap registers its buffer anew";
    check.remedy = kernel.at_least(5, 18) ? "allow userfaultfd in the container's seccomp profile"
                                          : "use Linux 5.18 or later, or buffers in the symmetric heap";
    return check;
}

Check check_network(const Examined& examined) {
    std::vector<std::string> up;
    for (const NetworkInterface& one : examined.system.interfaces)
        if (one.up && !one.loopback) up.push_back(one.name);
    if (!up.empty())
        return {"network", Severity::ok, fmt::format("{}", fmt::join(up, ", ")), "jobs of several hosts", {}};
    return {"network", Severity::note, "no interface but the loopback is up with an address",
            "jobs of several hosts are not possible; jobs on this host are", "ip link set <interface> up"};
}

}  // namespace npushmem::info
