// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/doctor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/version.hpp"

namespace npushmem::info {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t gib = 1 << 30;

PluginEntry plugin_entry(PluginKind kind, const std::string& name) {
    PluginEntry entry{};
    entry.found = {kind, name, "/lib/" + name + ".so", {}};
    entry.major = 1;
    entry.minor = kind == PluginKind::transport ? NPUSHMEM_TRANSPORT_MINOR : NPUSHMEM_BOOTSTRAP_MINOR;
    return entry;
}

PluginEntry refused_plugin(PluginKind kind, const std::string& name) {
    PluginEntry entry = plugin_entry(kind, name);
    entry.refusal = Refusal{LoadStage::major, "built for major version 9"};
    return entry;
}

// A machine on which every check is ok: four CPUs, four PEs, heaps of 64 MiB.
class Doctor : public ::testing::Test {
protected:
    Doctor() {
        const std::string version =
            fmt::format("{}.{}.{}", library_version.major, library_version.minor, library_version.patch);
        settings.transports = "self,p2p";
        settings.remote_transport = "auto";
        settings.remote_order = "verbs,ucx";
        settings.bootstrap = "AUTO";
        settings.symmetric_size.value = 64 * mib;
        system.cpus = 4;
        system.memory.available = {8 * gib, 16 * gib, false};
        system.memory.overcommit = 0;
        system.memory.huge_pages = "within_size";
        system.shm = {true, true, gib, gib, false};
        system.kernel = kernel_of("6.1.0");
        system.memory.commits_huge_pages = true;
        system.ptrace_scope = 1;
        system.interfaces = {{"lo", true, true}, {"eth0", true, false}};
        system.library = {"/lib/libnpushmem.so", version};
        system.launcher = {"/bin/npushmem-run", version};
        system.hwloc = {2, 9, 2, 10};
        for (const char* name : {"p2p", "self", "ucx", "verbs"})
            plugins.push_back(plugin_entry(PluginKind::transport, name));
        for (const char* name : {"pmix", "uid"}) plugins.push_back(plugin_entry(PluginKind::bootstrap, name));
    }

    [[nodiscard]] Examined examined() const {
        return {system, settings, plugins, absent, folders, malformed, unknown, previews, pes};
    }
    // Returns the checks that are not ok.
    [[nodiscard]] std::vector<Check> complaints() const {
        auto checks = examine(examined());
        std::erase_if(checks, [](const Check& check) { return check.severity == Severity::ok; });
        return checks;
    }
    // Expects exactly one complaint, and returns it.
    [[nodiscard]] Check complaint() const {
        const auto all = complaints();
        EXPECT_THAT(all, SizeIs(1)) << describe(all);
        return all.empty() ? Check{} : all.front();
    }
    void expect(Severity severity, const std::string& subject, const std::string& found, const std::string& remedy) {
        const Check check = complaint();
        EXPECT_EQ(name_of(check.severity), name_of(severity));
        EXPECT_EQ(check.subject, subject);
        EXPECT_THAT(check.found, HasSubstr(found));
        EXPECT_THAT(check.remedy, HasSubstr(remedy));
        EXPECT_THAT(check.affects, Not(IsEmpty()));
    }
    void add_rdma(const std::string& reason) { system.rdma = {{"mlx5_0", "/dev/infiniband/uverbs0", reason}}; }

    SystemFacts system;
    Settings settings;
    std::vector<PluginEntry> plugins;
    std::vector<AbsentPlugin> absent;
    std::vector<std::string> folders{"/lib/npushmem"};
    std::vector<Status> malformed;
    std::vector<std::string> unknown;
    std::vector<Status> previews;
    int pes = 4;
};

TEST_F(Doctor, HasNoComplaintAboutASoundMachine) {
    EXPECT_THAT(complaints(), IsEmpty()) << describe(complaints());
    const auto checks = examine(examined());
    EXPECT_EQ(first_problem(checks), nullptr);
    EXPECT_THAT(describe(checks),
                AllOf(HasSubstr("ptrace_scope is 1; npushmem neither traces"), HasSubstr("0 problems, 0 notes\n")));
}

TEST_F(Doctor, ReportsOtherVersionsAndMissingParts) {
    system.launcher.version = "9.9.9";
    expect(Severity::problem, "installation", "npushmem-run 9.9.9", "cmake --install");
    system.launcher = {"/bin/npushmem-run", ""};
    EXPECT_THAT(complaints(), IsEmpty());
    system.library = {};
    expect(Severity::note, "installation", "library not found", "cmake --install");
}

TEST_F(Doctor, ReportsAnotherMajorVersionOfHwloc) {
    system.hwloc = {2, 9, 1, 11};
    expect(Severity::problem, "hwloc", "1.11, built with 2.9", "install hwloc 2");
}

TEST_F(Doctor, ReportsVariables) {
    malformed = {{Code::config, "NPUSHMEM_NPES='many'"}};
    expect(Severity::problem, "variable", "many", "npushmem-info -c");
    malformed.clear();
    unknown = {"unknown variable NPUSHMEM_X is ignored"};
    expect(Severity::note, "variable", "NPUSHMEM_X", "correct the name");
}

TEST_F(Doctor, ReportsChoicesThatFail) {
    previews = {{Code::config, "NPUSHMEM_TOPO_FILE: no"}};
    expect(Severity::problem, "choices of a job", "NPUSHMEM_TOPO_FILE", "npushmem-info -c");
}

TEST_F(Doctor, ReportsMissingPluginFolders) {
    settings.plugin_path = "/nonexistent-folder";
    expect(Severity::note, "plugin folders", "/nonexistent-folder", "NPUSHMEM_PLUGIN_PATH");
}

TEST_F(Doctor, ReportsSelectedPluginsThatCannotBeUsed) {
    plugins[0] = refused_plugin(PluginKind::transport, "p2p");
    expect(Severity::problem, "transport p2p", "major version 9", "replace");
    plugins.erase(plugins.begin());
    expect(Severity::problem, "transport p2p", "no such plugin in /lib/npushmem", "NPUSHMEM_PLUGIN_PATH");
    absent = {{PluginKind::transport, "p2p", "built without it"}};
    expect(Severity::problem, "transport p2p", "built without it", "NPUSHMEM_TRANSPORTS");
    settings.disable_p2p = true;
    expect(Severity::note, "transport p2p", "built without it", "if you need it");
}

TEST_F(Doctor, NamesThePackageOfAMissingLibrary) {
    plugins[0].refusal = Refusal{LoadStage::opened,
                                 "transport plugin 'p2p' refused at stage 'opened': libfabric.so.1: cannot open shared "
                                 "object file: No such file or directory [/lib/p2p.so]"};
    expect(Severity::problem, "transport p2p", "libfabric.so.1",
           "install libfabric.so.1 (on Debian: package libfabric1)");
}

TEST_F(Doctor, ReportsDecoratorsRemoteTransportsAndBootstrapsThatAreSelected) {
    settings.transports = "self,fault(p2p)";
    expect(Severity::problem, "transport fault", "no such plugin", "NPUSHMEM_TRANSPORTS");
    settings.transports = "self,p2p";
    settings.remote_transport = "libfabric";
    expect(Severity::problem, "transport libfabric", "no such plugin", "NPUSHMEM_REMOTE_TRANSPORT");
    settings.remote_transport = "none";
    settings.bootstrap = "MPI";
    expect(Severity::problem, "bootstrap mpi", "no such plugin", "NPUSHMEM_BOOTSTRAP");
}

TEST_F(Doctor, NeedsTheBootstrapOfItsLauncher) {
    plugins.pop_back();
    expect(Severity::problem, "bootstrap uid", "not found", "NPUSHMEM_PLUGIN_PATH");
}

TEST_F(Doctor, OnlyNotesOtherPlugins) {
    plugins.push_back(refused_plugin(PluginKind::transport, "mine"));
    expect(Severity::note, "transport mine", "major version 9", "remove");
    plugins.back() = plugin_entry(PluginKind::transport, "mine");
    plugins.back().minor += 3;
    expect(Severity::note, "transport mine", fmt::format("built for interface 1.{}", NPUSHMEM_TRANSPORT_MINOR + 3),
           "headers");
}

TEST_F(Doctor, ReportsSharedMemoryThatCannotBeMapped) {
    system.kernel.shared_memory_failure = "memfd_create: Operation not permitted";
    expect(Severity::problem, "shared memory", "memfd_create", "seccomp");
}

TEST_F(Doctor, ComparesTheHeapsWithTheAvailableMemory) {
    settings.symmetric_size.value = 3 * gib;
    expect(Severity::note, "memory", "8 GiB of 16 GiB available; NPUSHMEM_SYMMETRIC_SIZE is 3 GiB",
           "NPUSHMEM_SYMMETRIC_SIZE=2048M");
    system.memory.available.limited_by_group = true;
    expect(Severity::note, "memory", "memory.max", "memory.max");
}

TEST_F(Doctor, ExaminesTheFolderOfTheHeap) {
    settings.heap_dir = "/huge";
    expect(Severity::problem, "heap", "no folder", "NPUSHMEM_HEAP_DIR");
    system.heap_dir = {true, false, gib, gib, false};
    expect(Severity::problem, "heap", "not writable", "NPUSHMEM_HEAP_DIR");
    system.heap_dir = {true, true, gib, 100 * mib, false};
    expect(Severity::note, "heap", "100 MiB of 1 GiB free", "NPUSHMEM_SYMMETRIC_SIZE=25M");
    system.heap_dir.free = gib;
    EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(Doctor, NotesSharedMemoryFoldersThatHoldNoTable) {
    system.shm = {};
    expect(Severity::note, "/dev/shm", "no such folder", "mount");
    system.shm = {true, false, gib, gib, false};
    expect(Severity::note, "/dev/shm", "not writable", "NPUSHMEM_NIC_ARBITRATION=0");
    system.shm = {true, true, gib, 0, false};
    expect(Severity::note, "/dev/shm", "0 B of 1 GiB free", "mount");
}

TEST_F(Doctor, ComparesTheHeapsWithTheLimitsOfFilesAndAddresses) {
    system.file_size.soft = 256 * mib;
    expect(Severity::problem, "address space", "a file may have 256 MiB; NPUSHMEM_SYMMETRIC_SIZE is 64 MiB",
           "ulimit -f unlimited");
    system.file_size.soft = unlimited;
    system.address_space.soft = 128 * mib;
    expect(Severity::problem, "address space", "128 MiB", "ulimit -v unlimited; or set NPUSHMEM_SYMMETRIC_SIZE=16M");
    system.address_space.soft = gib;
    EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(Doctor, NotesStrictOvercommit) {
    system.memory.overcommit = 2;
    system.memory.commit_limit = gib;
    EXPECT_THAT(complaints(), IsEmpty());
    system.memory.committed = gib - 8 * mib;
    expect(Severity::note, "overcommit", "8 MiB of 1 GiB left", "vm.overcommit_memory=0");
}

TEST_F(Doctor, TellsHowTheHeapGetsHugePages) {
    system.memory.huge_pages = "never";
    EXPECT_THAT(check_huge_pages(examined()).found,
                "the heap uses transparent ones where it commits 2 MiB or more at once");
    EXPECT_THAT(check_huge_pages(examined()).remedy, IsEmpty());
    settings.huge_pages = false;
    EXPECT_THAT(check_huge_pages(examined()).found, HasSubstr("NPUSHMEM_HUGE_PAGES is 0; "));
    EXPECT_THAT(describe(std::vector{check_huge_pages(examined())}),
                HasSubstr("for better speed of large transfers and of access at random: unset NPUSHMEM_HUGE_PAGES"));
    settings.huge_pages = true;
    system.memory.commits_huge_pages = false;
    EXPECT_THAT(check_huge_pages(examined()).found, HasSubstr("never; the heap uses small pages"));
    EXPECT_THAT(check_huge_pages(examined()).remedy, HasSubstr("echo within_size"));
    EXPECT_THAT(check_huge_pages(examined()).remedy, Not(HasSubstr("later")));
    system.kernel = kernel_of("5.15.0");
    EXPECT_THAT(check_huge_pages(examined()).remedy, HasSubstr("use Linux 6.1 or later; or echo within_size"));
    EXPECT_THAT(complaints(), IsEmpty());
    system.memory.huge_pages = "within_size";
    EXPECT_THAT(check_huge_pages(examined()).found, HasSubstr("within_size; the heap uses huge pages"));
    EXPECT_THAT(check_huge_pages(examined()).remedy, IsEmpty());
    system.heap_dir.has_huge_pages = true;
    EXPECT_THAT(check_huge_pages(examined()).found, "NPUSHMEM_HEAP_DIR is a mount of huge pages");
}

TEST_F(Doctor, NotesMorePesThanCpus) {
    pes = 5;
    expect(Severity::note, "CPUs", "4 usable CPUs", "npushmem-run -n 4");
}

TEST_F(Doctor, NotesAQuota) {
    system.quota = 2.5;
    pes = 2;
    expect(Severity::note, "CPU quota", "2.5 of 4 CPUs", "at most 2 PEs");
    system.quota = 4;
    EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(Doctor, ReportsLimitsOfFilesAndProcesses) {
    system.open_files = {50, 75};
    expect(Severity::problem, "open files", "at most 75; 4 PEs need about 76", "nofile");
    system.raises_limits = true;
    expect(Severity::problem, "open files", "at most 75; 4 PEs need about 76", "ulimit -n 304");
    system.open_files.hard = 76;
    system.processes = {15, 1000};
    expect(Severity::problem, "processes", "limit 15; 4 PEs need about 16", "ulimit -u 64");
    system.ignores_process_limit = true;
    EXPECT_THAT(complaints(), IsEmpty());
    EXPECT_THAT(check_processes(examined()).found, HasSubstr("limit 15, which this process may exceed"));
    system.ignores_process_limit = false;
    system.processes.soft = 16;
    EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(Doctor, ReportsKernelsWithoutProcessDescriptors) {
    system.kernel = kernel_of("4.18.0");
    system.kernel.pidfd_failure = "Function not implemented";
    expect(Severity::problem, "kernel", "Linux 4.18.0: pidfd_open fails", "Linux 5.3");
    system.kernel = kernel_of("5.18.0");
    system.kernel.pidfd_failure = "Operation not permitted";
    expect(Severity::problem, "kernel", "Operation not permitted", "seccomp");
    system.launchers = {{"/usr/bin/srun", ""}};
    expect(Severity::note, "kernel", "Operation not permitted", "seccomp");
}

TEST_F(Doctor, ReportsMissingAndClosedRdmaDevicesByTheSelection) {
    settings.remote_transport = "verbs";
    expect(Severity::problem, "RDMA devices", "none", "NPUSHMEM_REMOTE_TRANSPORT=auto");
    add_rdma("Permission denied");
    expect(Severity::problem, "RDMA devices", "mlx5_0 (/dev/infiniband/uverbs0: Permission denied)", "chmod");
    system.rdma.push_back({"mlx5_1", "/dev/infiniband/uverbs1", ""});
    const Check one_usable = check_rdma(examined());
    EXPECT_EQ(name_of(one_usable.severity), "note");
    EXPECT_THAT(one_usable.found, HasSubstr("Permission denied), mlx5_1"));
    add_rdma("Permission denied");
    settings.remote_transport = "auto";
    expect(Severity::note, "RDMA devices", "Permission denied", "docker --device");
    add_rdma("");
    EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(Doctor, ComparesTheHeapWithTheLimitOfLockedMemoryWhereItCounts) {
    system.locked_memory.soft = 8 * mib;
    EXPECT_THAT(complaints(), IsEmpty());
    add_rdma("");
    expect(Severity::note, "locked memory", "limit 8 MiB; the heap of a PE is 64 MiB", "memlock unlimited");
    settings.remote_transport = "verbs";
    expect(Severity::note, "locked memory", "limit 8 MiB", "LimitMEMLOCK=infinity");
    system.ignores_locked_limit = true;
    EXPECT_THAT(complaints(), IsEmpty());
    system.ignores_locked_limit = false;
    system.locked_memory.soft = 64 * mib;
    EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(Doctor, NotesMissingUserfaultfdWhereVerbsNeedsIt) {
    system.kernel.userfaultfd_failure = "Operation not permitted";
    EXPECT_THAT(complaints(), IsEmpty());
    add_rdma("");
    expect(Severity::note, "userfaultfd", "Operation not permitted", "seccomp");
    system.kernel = kernel_of("5.10.0");
    expect(Severity::note, "userfaultfd", "too old", "Linux 5.18");
}

TEST_F(Doctor, NotesAMachineWithoutNetwork) {
    system.interfaces[1].up = false;
    expect(Severity::note, "network", "loopback", "ip link");
}

TEST_F(Doctor, NotesLaunchersWithoutABootstrap) {
    system.launchers = {{"/usr/bin/srun", ""}};
    EXPECT_THAT(complaints(), IsEmpty());
    EXPECT_THAT(check_launchers(examined()).found, HasSubstr("/usr/bin/srun (bootstraps pmix)"));
    plugins.erase(plugins.end() - 2);
    expect(Severity::note, "launchers", "/usr/bin/srun (bootstraps none)", "pmix");
}

TEST_F(Doctor, PreviewsTheTransportBetweenHosts) {
    const auto preview = [this] { return preview_remote_transport(settings, plugins, system); };
    EXPECT_EQ(preview().name, "ucx");
    EXPECT_EQ(preview().why, "auto: verbs has no device");
    add_rdma("Permission denied");
    EXPECT_EQ(preview().why, "auto: verbs cannot open its devices");
    add_rdma("");
    EXPECT_EQ(preview().name, "verbs");
    settings.remote_order = "libfabric";
    EXPECT_EQ(preview().name, "");
    EXPECT_EQ(preview().why, "auto: libfabric is no usable plugin");
    settings.remote_transport = "none";
    EXPECT_EQ(preview().name, "");
}

TEST_F(Doctor, PreviewsCandidatesWhoseCostsAJobCompares) {
    const auto preview = [this] { return preview_remote_transport(settings, plugins, system); };
    plugins.push_back(plugin_entry(PluginKind::transport, "libfabric"));
    for (PluginEntry& entry : plugins)
        if (entry.found.name == "verbs") entry.capabilities = NPUSHMEM_CAP_DEVICES;
    settings.remote_order = "verbs,ucx,libfabric";
    EXPECT_EQ(preview().name, "ucx");
    system.has_fabric = true;
    EXPECT_EQ(preview().name, "ucx or libfabric");
    EXPECT_EQ(preview().why, "auto: by their costs; verbs has no device");
    add_rdma("");
    EXPECT_EQ(preview().name, "verbs");
    EXPECT_EQ(preview().why, "auto");
    settings.remote_order = "ucx,verbs,libfabric";
    EXPECT_EQ(preview().name, "ucx or verbs");
    EXPECT_EQ(preview().why, "auto: by their costs");
}

TEST_F(Doctor, CountsAndDescribesItsOutcomes) {
    pes = 5;
    unknown = {"unknown variable NPUSHMEM_X is ignored"};
    system.kernel.shared_memory_failure = "no memfd";
    const auto checks = examine(examined());
    EXPECT_EQ(count(checks, Severity::problem), 1U);
    EXPECT_EQ(count(checks, Severity::note), 2U);
    ASSERT_NE(first_problem(checks), nullptr);
    EXPECT_EQ(first_problem(checks)->found, "no memfd");
    EXPECT_THAT(describe(checks),
                AllOf(HasSubstr("problem  shared memory: no memfd\n         affects: every job"),
                      HasSubstr("         to do: allow memfd_create"), HasSubstr("\n1 problem, 2 notes\n")));
}

}  // namespace

}  // namespace npushmem::info
