// SPDX-License-Identifier: BSD-3-Clause
// What the checks of npushmem-info need to know about the system, as plain values: gather_facts() fills them from this
// machine, tests fill them by hand.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/host_facts.hpp"
#include "npushmem/plugin/status.hpp"
#include "topology/machine/discovery.hpp"

namespace npushmem::info {

inline constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

// A resource limit of this process, which PEs inherit.
struct ResourceLimit {
    std::uint64_t soft = unlimited;
    std::uint64_t hard = unlimited;
};

struct FolderFacts {
    bool exists = false;
    bool writable = false;
    std::uint64_t total = 0;  // bytes of its file system
    std::uint64_t free = 0;
    bool has_huge_pages = false;  // it is a mount of huge pages
};

// A device of the kernel's RDMA stack.
struct RdmaDevice {
    std::string name;    // "mlx5_0"
    std::string file;    // "/dev/infiniband/uverbs0"
    std::string reason;  // why this process cannot open the file; empty: it can
};

struct NetworkInterface {
    std::string name;
    bool up = false;
    bool loopback = false;
};

// A program file and the version that it states; both are empty if it was not found.
struct ProgramFacts {
    std::string path;
    std::string version;  // "0.1.0"; empty: unknown
};

struct KernelFacts {
    int major = 0;
    int minor = 0;
    std::string release;                // "6.1.0-18-amd64"
    std::string pidfd_failure;          // why pidfd_open fails; empty: it works
    std::string userfaultfd_failure;    // likewise
    std::string shared_memory_failure;  // why a child process cannot map this process's shared segment; likewise

    [[nodiscard]] bool at_least(int wanted_major, int wanted_minor) const {
        return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
    }
};

struct MemoryFacts {
    AvailableMemory available;
    std::optional<std::int64_t> overcommit;  // /proc/sys/vm/overcommit_memory
    std::uint64_t commit_limit = 0;          // bytes; counts with overcommit mode 2 only
    std::uint64_t committed = 0;
    bool commits_huge_pages = false;  // SharedSegment::use_huge_pages has an effect on a heap in NPUSHMEM_HEAP_DIR
    std::string huge_pages;  // mode of transparent huge pages of shared memory: "never", "within_size"; empty: unknown
};

struct SystemFacts {
    ResourceLimit locked_memory;         // RLIMIT_MEMLOCK
    ResourceLimit open_files;            // RLIMIT_NOFILE
    ResourceLimit processes;             // RLIMIT_NPROC
    ResourceLimit file_size;             // RLIMIT_FSIZE
    ResourceLimit address_space;         // RLIMIT_AS
    bool ignores_locked_limit = false;   // the process has CAP_IPC_LOCK
    bool ignores_process_limit = false;  // it is root, or has CAP_SYS_RESOURCE or CAP_SYS_ADMIN
    bool raises_limits = false;          // it has CAP_SYS_RESOURCE
    int cpus = 1;                        // of the affinity mask
    double quota = 0;                    // of the control groups, in cores; 0: none
    MemoryFacts memory;
    FolderFacts shm;       // /dev/shm
    FolderFacts heap_dir;  // NPUSHMEM_HEAP_DIR, if it is set
    KernelFacts kernel;
    std::optional<std::int64_t> ptrace_scope;  // of the Yama security module
    std::vector<RdmaDevice> rdma;
    bool has_fabric = false;  // see has_fabric_device()
    std::vector<NetworkInterface> interfaces;
    ProgramFacts library;                 // libnpushmem.so
    ProgramFacts launcher;                // npushmem-run
    std::vector<ProgramFacts> launchers;  // srun, mpirun, mpiexec on PATH; without versions
    topology::HwlocVersions hwloc;

    // CPUs that the PEs of one host can use together.
    [[nodiscard]] double usable_cores() const { return quota > 0 && quota < cpus ? quota : cpus; }
};

// Where the installed files are.
struct Installation {
    std::string programs;  // folder of npushmem-info
    std::string library;   // folder of libnpushmem.so
};

// Inspects this machine and process. Starts two short child processes.
SystemFacts gather_facts(const Settings& settings, const Installation& installation, const Environment& environment);

// The parts that depend on files only, for tests.

// The word in brackets of "always within_size [never]"; empty if there is none.
std::string selected_word(const std::string& text);
// Reads "6.1.0-18-amd64"; both numbers are 0 for malformed text.
KernelFacts kernel_of(const std::string& release);
// Fills memory facts from /proc and /sys as `read` returns them.
MemoryFacts memory_facts(const FileReader& read);
// Whether /proc/self/status, whose content is `status`, has this effective capability.
bool has_capability(const std::string& status, unsigned capability);
// "0.1.0" in "libnpushmem.so.0.1.0" or in "npushmem-run 0.1.0\n": the last run of digits and dots; empty if there is
// none.
std::string version_in(const std::string& text);

}  // namespace npushmem::info
