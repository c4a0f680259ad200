// SPDX-License-Identifier: BSD-3-Clause
// The table of the runtime's variables, and the parsers of their values.
#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/base/config.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

namespace {

Status store(std::string_view text, std::string& into) {
    into = std::string(trimmed(text));
    return {};
}

template <class T>
Status store_result(Result<T> parsed, T& into) {
    if (parsed.ok()) into = parsed.value();
    return parsed.status();
}

Status store(std::string_view text, bool& into) { return store_result(parse_bool(text), into); }
Status store(std::string_view text, ByteCount& into) { return store_result(parse_size(text), into); }
Status store(std::string_view text, Duration& into) { return store_result(parse_duration(text), into); }

template <auto Member>
constexpr auto any = [](std::string_view text, Settings& into) -> Status { return store(text, into.*Member); };

template <auto Member, std::int64_t Low, std::int64_t High>
constexpr auto between = [](std::string_view text, Settings& into) -> Status {
    return store_result(parse_integer(text, Low, High), into.*Member);
};

constexpr std::int64_t max_int32 = std::numeric_limits<std::int32_t>::max();

// Larger than any address space, and small enough for sums with the runtime's additions.
constexpr std::uint64_t max_heap_bytes = 1ULL << 60;

Status parse_heap_size(std::string_view text, Settings& into) {
    Status stored = store(text, into.symmetric_size);
    if (!stored.ok()) return stored;
    if (into.symmetric_size.value == 0) return {Code::config, "the symmetric heap cannot have 0 bytes"};
    if (into.symmetric_size.value > max_heap_bytes)
        return {Code::config,
                fmt::format("a symmetric heap of {} bytes exceeds every address space", into.symmetric_size.value)};
    return {};
}

template <auto Member>
constexpr auto one_of(std::string_view text, Settings& into, std::span<const std::string_view> words) {
    const std::string word = lowercase(trimmed(text));
    std::string list;
    for (auto candidate : words) {
        if (word == candidate) {
            into.*Member = word;
            return Status{};
        }
        list += list.empty() ? "" : ", ";
        list += candidate;
    }
    return Status{Code::config, fmt::format("'{}': expected one of: {}", text, list)};
}

Status parse_on_error(std::string_view text, Settings& into) {
    constexpr std::string_view words[] = {"job", "report", "exit"};
    return one_of<&Settings::on_error>(text, into, words);
}

Status parse_on_peer_death(std::string_view text, Settings& into) {
    const std::string word = lowercase(trimmed(text));
    into.survives_deaths = word == "survive";
    if (into.survives_deaths || word == "job") return {};
    return {Code::config, fmt::format("'{}': expected one of: job, survive", text)};
}

Status parse_bootstrap_pmi(std::string_view text, Settings& into) {
    constexpr std::string_view words[] = {"pmi", "pmi-2", "pmix"};
    return one_of<&Settings::bootstrap_pmi>(text, into, words);
}

Status parse_ibgda(std::string_view text, Settings& into) {
    into.ib_enable_ibgda = "auto";
    if (lowercase(trimmed(text)) == "auto") return {};
    bool given = false;
    Status parsed = store(text, given);
    into.ib_enable_ibgda = given ? "1" : "0";
    return parsed;
}

Status parse_info(std::string_view text, Settings& into) {
    if (lowercase(trimmed(text)) == "json") {
        into.info = StartReportForm::json;
        return {};
    }
    const auto wanted = parse_bool(text);
    if (!wanted.ok()) return {Code::config, fmt::format("'{}': expected one of: 0, 1, json", text)};
    into.info = wanted.value() ? StartReportForm::text : StartReportForm::none;
    return {};
}

Status parse_nic_policy(std::string_view text, Settings& into) {
    constexpr std::string_view words[] = {"balanced", "nearest", "exclusive", "round_robin", "list"};
    return one_of<&Settings::nic_policy>(text, into, words);
}

Status parse_debug(std::string_view text, Settings& into) {
    constexpr std::string_view words[] = {"error", "warn", "info", "debug", "trace"};
    return one_of<&Settings::debug>(text, into, words);
}

using S = Settings;

constexpr ConfigRow rows[] = {
    {"CONFIG_FILE", "", "path", "config",
     "file with a variable on each line, NPUSHMEM_<name>=<value>; the environment takes precedence over it",
     any<&S::config_file>},
    {"BOOTSTRAP", "AUTO", "AUTO, UID, PMI, MPI, SHMEM, PLUGIN or a plugin's name", "bootstrap",
     "how PEs find each other at start; AUTO: the plugin that recognises the launcher of this process",
     any<&S::bootstrap>},
    {"BOOTSTRAP_PMI", "PMI", "PMI, PMI-2 or PMIX", "bootstrap", "the PMI version that BOOTSTRAP=PMI selects",
     parse_bootstrap_pmi},
    {"BOOTSTRAP_PLUGIN", "", "path or name", "bootstrap", "the bootstrap plugin of BOOTSTRAP=PLUGIN",
     any<&S::bootstrap_plugin>},
    {"UNIQUEID", "", "256 hexadecimal digits", "bootstrap", "unique id of the job, set by npushmem-run",
     any<&S::uniqueid>},
    {"PE", "-1", "int -1..", "bootstrap", "number of this PE, set by npushmem-run; -1: not given",
     between<&S::pe, -1, max_int32>},
    {"NPES", "-1", "int -1..", "bootstrap", "number of PEs, set by npushmem-run; -1: not given",
     between<&S::npes, -1, max_int32>},
    {"EMULATED_HOST", "-1", "int -1..", "bootstrap",
     "emulated host of this PE, set by npushmem-run --nodes; PEs of different hosts cannot map each other's memory; "
     "-1: "
     "none",
     between<&S::emulated_host, -1, max_int32>},
    {"LAUNCHER_FD", "", "descriptor:device:inode,...", "bootstrap",
     "channel for reports to npushmem-run, which sets it; see core/base/launcher_channel.hpp", any<&S::launcher_fd>},
    {"TRANSPORTS", "self,p2p", "ordered list", "transport",
     "transports to try for each PE; the first that reaches the PE is used; decorators wrap one, as in fault(p2p)",
     any<&S::transports>},
    {"DISABLE_P2P", "0", "bool", "transport", "remove p2p from TRANSPORTS", any<&S::disable_p2p>},
    {"REMOTE_TRANSPORT", "auto", "auto, none or a name", "transport",
     "transport for PEs of other hosts, appended to TRANSPORTS; auto: in a job of several hosts, of those of "
     "REMOTE_ORDER that every PE can open the one with the lowest reported cost, else the first; none if TRANSPORTS "
     "has one",
     any<&S::remote_transport>},
    {"REMOTE_ORDER", "verbs,tcp,ucx,libfabric", "ordered list", "transport",
     "transports that REMOTE_TRANSPORT=auto tries, in this order", any<&S::remote_order>},
    {"IB_ENABLE_IBGDA", "auto", "auto or bool", "transport",
     "1: each core of a kernel calls the transports to other hosts itself, over its own queues; 0: cores pass "
     "requests to a proxy thread; auto: 0 if every PE has a CPU for its proxy",
     parse_ibgda},
    {"PLUGIN_PATH", "", "folders, separated by ':'", "plugin", "folders to search first for plugins",
     any<&S::plugin_path>},
    {"SYMMETRIC_SIZE", "1G", "size", "memory", "size of each PE's symmetric heap; memory is committed when allocated",
     parse_heap_size},
    {"HEAP_DIR", "", "folder", "memory",
     "back the heap with an unnamed file in this folder (for instance a huge-page mount); empty: anonymous memory",
     any<&S::heap_dir>},
    {"HUGE_PAGES", "1", "bool", "memory",
     "commit memory as transparent huge pages, each whole 2 MiB that is committed at once, if Linux finds them; 0: "
     "leave the choice to Linux",
     any<&S::huge_pages>},
    {"SHARE_BETWEEN_CONTAINERS", "1", "bool", "memory",
     "PEs of one machine in different PID namespaces (containers) share memory if a Unix socket joins them: in the "
     "network "
     "namespace, /dev/shm, /tmp or HEAP_DIR; 0: they count as PEs of different hosts",
     any<&S::share_between_containers>},
    {"STATIC_DATA", "1", "bool", "memory",
     "make the executable's global and static variables symmetric; 0: keep them private to each PE",
     any<&S::static_data>},
    {"ENABLE_NIC_PE_MAPPING", "0", "bool", "topology",
     "assign NICs in the order of local PEs by HCA_LIST or HCA_PE_MAPPING, not by distance",
     any<&S::enable_nic_pe_mapping>},
    {"HCA_LIST", "", "name[:port],... or ^name[:port],...", "topology", "allowed NICs, or with ^ excluded NICs",
     any<&S::hca_list>},
    {"HCA_PE_MAPPING", "", "name:port:count,...", "topology",
     "assign `count` PEs of the host to each port, in this order", any<&S::hca_pe_mapping>},
    {"NIC_RAILS", "", "name[:port]=rail,...", "topology",
     "rails (0 to 255) of this host's ports; ports of two PEs connect by rail; if empty by subnet, then by "
     "their position among the host's ports",
     any<&S::nic_rails>},
    {"NIC_POLICY", "balanced", "balanced, nearest, exclusive, round_robin or list", "topology",
     "how NICs are assigned to PEs", parse_nic_policy},
    {"NICS_PER_PE", "0", "int 0..64", "topology",
     "maximum number of NIC ports of a PE; 0: an equal share of the host's ports per accelerator (or NPU)",
     between<&S::nics_per_pe, 0, 64>},
    {"NIC_ARBITRATION", "1", "bool", "topology",
     "avoid the NICs that other jobs on this host use, and publish this job's NICs to them", any<&S::nic_arbitration>},
    {"DEVICE", "-1", "int -1..4095", "topology",
     "number of the NPU that this PE drives, over all jobs of the host; -1: the lowest unused one",
     between<&S::device, -1, 4095>},
    {"TOPO_FILE", "", "path", "topology", "hwloc XML file to use instead of this machine's topology",
     any<&S::topo_file>},
    {"TIMEOUT", "0", "duration", "wait", "time limit of every blocking call; 0: none", any<&S::timeout>},
    {"REPORT_AFTER", "60s", "duration", "wait",
     "each time a call has blocked for this long, one PE of the host reports on standard error what each PE of the "
     "host waits for; 0: never. npushmem-info --jobs shows it at any time",
     any<&S::report_after>},
    {"ON_PEER_DEATH", "job", "job or survive", "wait",
     "effect of a PE's death. job: the job ends; survive: calls that need the dead PE fail with its number, all others "
     "go on, and npushmemx_team_shrink makes a team of the living. All PEs and npushmem-run need the same value",
     parse_on_peer_death},
    {"BARRIER_ALGO", "auto", "name or name:radix", "coll",
     "algorithm of host barriers; auto, adaptive, or one that npushmem-info -b lists", any<&S::barrier_algo>},
    {"COLL_TUNING_FILE", "", "path", "coll",
     "decision file for auto, written by npushmem-perf tune-barrier and tune-collectives; npushmem-info -b shows its "
     "effect on barriers; its other rules select methods of collectives, and divide the calls between npushmem and "
     "COLL_LIBRARY",
     any<&S::coll_tuning_file>},
    {"COLL_LIBRARY", "", "name or path", "coll",
     "plugin of another library whose collectives serve all calls that it supports, such as mpi; npushmem-info -p "
     "lists "
     "them; empty: npushmem's own collectives",
     any<&S::coll_library>},
    {"NPU_BLOCKS", "20", "int 1..1024", "npu", "number of blocks of the emulated NPU",
     between<&S::npu_blocks, 1, 1024>},
    {"NPU_VECTOR_CORES", "2", "int 1..16", "npu", "number of vector cores of a block",
     between<&S::npu_vector_cores, 1, 16>},
    {"NPU_DEVICE", "", "path", "npu",
     "device file with limits of the emulated NPU, which checked mode checks; its blocks and vector_cores override the "
     "two variables; empty: none",
     any<&S::npu_device>},
    {"NPU_CHECK", "0", "bool", "npu",
     "check kernels for hazards: a launch with a hazard fails and reports its place and cause", any<&S::npu_check>},
    {"NPU_CHECK_REPORT", "", "path or stderr", "npu",
     "in checked mode, draws each hazard as a sequence diagram into a file; the path ends in .svg, .txt or .json, and "
     "the PE and a number are added before the ending; stderr: as text on standard error",
     any<&S::npu_check_report>},
    {"NPU_SCHEDULE", "lazy", "eager, lazy or random:<seed>", "npu", "when queued commands run in checked mode",
     any<&S::npu_schedule>},
    {"NPU_BARRIER", "auto", "v1, v2, v2:<radix>, v3 or auto", "npu", "barrier algorithm of kernels",
     any<&S::npu_barrier>},
    {"CHECK", "0", "bool", "report",
     "check the arguments of every call fully: objects are allocated, no overlaps, equal arguments on all PEs of a "
     "collective call; slow",
     any<&S::check>},
    {"INFO", "0", "0, 1 or json", "report",
     "PE 0 prints the configuration choices and their reasons at start, on standard error; json: as one object on one "
     "line",
     parse_info},
    {"VERSION", "0", "bool", "report", "PE 0 prints the version at start", any<&S::version>},
    {"STATS", "0", "bool", "report",
     "count and time barriers, waits and last arrivals; PE 0 prints a table at finalize", any<&S::stats>},
    {"STATS_EVERY", "16", "int 1..1000000", "report", "with STATS: one barrier in this many is timed",
     between<&S::stats_every, 1, 1'000'000>},
    {"ON_ERROR", "job", "job, report or exit", "report",
     "effect of a failed call. job: report it and fail the job under npushmem-run, which then returns 1, unless the "
     "call returned NULL, an invalid handle or an npushmemx_ code, or the program called npushmemx_last_error; "
     "report: only report it; exit: report it and end this process. Under other launchers job only reports "
     "failed calls: use exit",
     parse_on_error},
    {"DEBUG", "warn", "error, warn, info, debug or trace", "report", "log level", parse_debug},
    {"DEBUG_SUBSYS", "", "list", "report", "subsystems that log levels below 'warn'; empty: all",
     any<&S::debug_subsys>},
    {"DEBUG_FILE", "", "path", "report", "log to this file instead of standard error; %h is the host, %p the process",
     any<&S::debug_file>},
};

}  // namespace

std::span<const ConfigRow> config_rows() { return rows; }

}  // namespace npushmem
