// SPDX-License-Identifier: BSD-3-Clause
// Start, end, queries that are allowed at any time, and statistics.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/api/access.hpp"
#include "core/api/failures.hpp"
#include "core/api/library.hpp"
#include "core/api/teams.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "npushmem.h"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/error.hpp"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

namespace {

int start_or_report(const char* function, const StartRequest& request) {
    const Status started = start(request);
    if (!started.ok()) fail_returned(function, started);
    return static_cast<int>(started.code());
}

int refuse(const char* function, Code code, const std::string& message) {
    fail_returned(function, {code, message});
    return static_cast<int>(code);
}

std::string no_such_rank(int rank, int nranks) {
    return fmt::format("rank {} of {} ranks does not exist", rank, nranks);
}

StartRequest compiled_with(int major, int minor, int patch) {
    StartRequest request;
    request.compiled_with = {major, minor, patch};
    return request;
}

std::string thread_level_error(int requested) {
    return fmt::format("thread level {}: expected SINGLE (0) to MULTIPLE (3)", requested);
}

int start_thread(int requested, int* provided, const StartRequest& request) {
    constexpr const char* function = "npushmem_init_thread";
    if (requested < NPUSHMEM_THREAD_SINGLE || requested > NPUSHMEM_THREAD_MULTIPLE)
        return refuse(function, Code::argument, thread_level_error(requested));
    const int code = start_or_report(function, request);
    if (code == 0) raise_thread_level(requested);
    if (provided != nullptr) *provided = thread_level();
    return code;
}

// The flags of npushmemx_init_attr for those of NVSHMEM.
Result<unsigned> own_flags(unsigned nvshmem) {
    constexpr unsigned mpi_comm = 2;
    constexpr unsigned shmem = 4;
    constexpr unsigned uniqueid = 8;
    if ((nvshmem & ~(mpi_comm | shmem | uniqueid)) != 0)
        return Status{Code::argument, fmt::format("flags {:#x}: expected 0 or one of NVSHMEMX_INIT_WITH_MPI_COMM (2), "
                                                  "NVSHMEMX_INIT_WITH_SHMEM (4) and NVSHMEMX_INIT_WITH_UNIQUEID (8)",
                                                  nvshmem)};
    return ((nvshmem & mpi_comm) != 0 ? NPUSHMEMX_INIT_WITH_MPI_COMM : 0U) |
           ((nvshmem & shmem) != 0 ? NPUSHMEMX_INIT_WITH_SHMEM : 0U) |
           ((nvshmem & uniqueid) != 0 ? NPUSHMEMX_INIT_WITH_UNIQUEID : 0U);
}

// What the bootstrap uses that serves the ids of this process.
struct IdService {
    IdService(Config read, Log opened) : config(std::move(read)), log(std::move(opened)) {}

    Config config;
    Log log;
    PluginServices services{config, log};
    std::shared_ptr<const LoadedBootstrap> plugin;
};

// A service must live while ranks may join, which only the program knows, so none is destroyed. Ids that are made one
// after the other under the same configuration share one.
Status make_id_here(std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    auto config = Config::read(ProcessEnvironment{});
    if (!config.ok()) return config.status();
    static std::mutex lock;
    static IdService* latest = nullptr;
    const std::lock_guard guard(lock);
    std::unique_ptr<IdService> fresh;
    if (latest == nullptr || !latest->config.is_given_alike(config.value())) {
        auto log = Log::open(config.value().settings());
        if (!log.ok()) return log.status();
        fresh = std::make_unique<IdService>(std::move(config).value(), std::move(log).value());
    }
    IdService& service = fresh ? *fresh : *latest;
    Status made = make_id(service.config, service.services.table(), service.plugin, id);
    if (made.ok() && fresh) latest = fresh.release();
    return made;
}

}  // namespace

extern "C" {

void npushmemx_openshmem_names(void) { set_api_names(ApiNames::openshmem); }

void npushmemx_openshmem_init(void) {
    set_api_names(ApiNames::openshmem);
    const Status started = start({});
    if (!started.ok()) fail_program("npushmem_init", started);
}

int npushmemx_openshmem_init_thread(int requested, int* provided) {
    set_api_names(ApiNames::openshmem);
    return start_thread(requested, provided, {});
}

void npushmemx_init_from(int major, int minor, int patch) {
    set_api_names(ApiNames::npushmem);
    const Status started = start(compiled_with(major, minor, patch));
    if (!started.ok()) fail_start("npushmem_init", started);
}

int npushmemx_init_thread_from(int requested, int* provided, int major, int minor, int patch) {
    set_api_names(ApiNames::npushmem);
    return start_thread(requested, provided, compiled_with(major, minor, patch));
}

// In parentheses, because the header has macros of the same names.
void(npushmem_init)(void) {
    set_api_names(ApiNames::npushmem);
    const Status started = start({});
    if (!started.ok()) fail_start(__func__, started);
}

int(npushmem_init_thread)(int requested, int* provided) {
    set_api_names(ApiNames::npushmem);
    return start_thread(requested, provided, {});
}

void npushmem_start_pes(int) { (npushmem_init)(); }

void npushmem_pcontrol(int, ...) {}

void npushmem_finalize(void) {
    const Status stopped = stop();
    if (!stopped.ok()) fail(__func__, stopped);
}

void npushmem_query_initialized(int* initialized) {
    if (initialized != nullptr) *initialized = runtime() != nullptr ? 1 : 0;
}

void npushmem_query_thread(int* provided) {
    if (provided != nullptr) *provided = thread_level();
}

void npushmem_global_exit(int status) {
    Runtime* up = runtime();
    if (up == nullptr) run_call(__func__, not_running);
    exit_job(up, status);
}

int npushmem_my_pe(void) {
    if (const Runtime* up = runtime_unnoted()) return up->my_pe();
    run_call(__func__, not_running);
    return -1;
}

int npushmem_n_pes(void) {
    if (const Runtime* up = runtime_unnoted()) return up->npes();
    run_call(__func__, not_running);
    return -1;
}

int npushmem_pe_accessible(int pe) {
    const Runtime* up = runtime();
    return up != nullptr && pe >= 0 && pe < up->npes() ? 1 : 0;
}

void npushmem_info_get_version(int* major, int* minor) {
    if (major != nullptr) *major = NPUSHMEM_MAJOR_VERSION;
    if (minor != nullptr) *minor = NPUSHMEM_MINOR_VERSION;
}

void npushmem_info_get_name(char* name) {
    if (name != nullptr) std::memcpy(name, NPUSHMEM_VENDOR_STRING, sizeof NPUSHMEM_VENDOR_STRING);
}

void npushmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
    if (major != nullptr) *major = library_version.major;
    if (minor != nullptr) *minor = library_version.minor;
    if (patch != nullptr) *patch = library_version.patch;
}

int npushmemx_get_uniqueid(npushmemx_uniqueid_t* id) {
    if (id == nullptr) return refuse(__func__, Code::argument, "id is NULL");
    const Status made =
        make_id_here(std::as_writable_bytes(std::span<unsigned char, NPUSHMEM_UNIQUEID_BYTES>(id->bytes)));
    return made.ok() ? 0 : refuse(__func__, made.code(), made.message());
}

int npushmemx_set_attr_uniqueid_args(int rank, int nranks, const npushmemx_uniqueid_t* id,
                                     npushmemx_init_attr_t* attr) {
    if (id == nullptr || attr == nullptr)
        return refuse(__func__, Code::argument, id == nullptr ? "id is NULL" : "attr is NULL");
    if (nranks < 1 || rank < 0 || rank >= nranks) return refuse(__func__, Code::range, no_such_rank(rank, nranks));
    attr->rank = rank;
    attr->nranks = nranks;
    attr->uniqueid = *id;
    return 0;
}

int npushmemx_init_attr(unsigned int flags, npushmemx_init_attr_t* attr) {
    constexpr unsigned known = NPUSHMEMX_INIT_WITH_UNIQUEID | NPUSHMEMX_INIT_WITH_MPI_COMM | NPUSHMEMX_INIT_WITH_SHMEM;
    if ((flags & ~known) != 0)
        return refuse(__func__, Code::argument, fmt::format("flags {:#x} has unknown bits", flags));
    if ((flags & (flags - 1)) != 0)
        return refuse(__func__, Code::argument,
                      fmt::format("flags {:#x} names several ways to start: give one of NPUSHMEMX_INIT_", flags));
    if (flags == 0 && attr == nullptr) return start_or_report(__func__, {});
    if (attr == nullptr || attr->struct_size < sizeof(npushmemx_init_attr_t))
        return refuse(__func__, Code::argument, "attr is NULL or was not set by NPUSHMEMX_INIT_ATTR_INITIALIZER");
    StartRequest request;
    request.compiled_with = {attr->version_major, attr->version_minor, attr->version_patch};
    request.attribute = attr->attribute;
    if ((flags & NPUSHMEMX_INIT_WITH_MPI_COMM) != 0 && attr->attribute == nullptr)
        return refuse(__func__, Code::argument,
                      "attr has no communicator; set attribute to the address of an MPI_Comm");
    if ((flags & NPUSHMEMX_INIT_WITH_MPI_COMM) != 0) request.bootstrap = "mpi";
    if ((flags & NPUSHMEMX_INIT_WITH_SHMEM) != 0) request.bootstrap = "shmem";
    if ((flags & NPUSHMEMX_INIT_WITH_UNIQUEID) != 0) {
        if (attr->nranks < 1)
            return refuse(__func__, Code::argument, "attr has no rank; call npushmemx_set_attr_uniqueid_args first");
        if (attr->rank < 0 || attr->rank >= attr->nranks)
            return refuse(__func__, Code::range, no_such_rank(attr->rank, attr->nranks));
        request.rank = attr->rank;
        request.nranks = attr->nranks;
        std::memcpy(request.uniqueid.emplace().data(), attr->uniqueid.bytes, sizeof attr->uniqueid.bytes);
    }
    return start_or_report(__func__, request);
}

int npushmemx_nvshmem_init(unsigned int flags, npushmemx_init_attr_t* attr, int requested, int* provided,
                           int ends_process) {
    int code = 0;
    if (requested < NPUSHMEM_THREAD_SINGLE || requested > NPUSHMEM_THREAD_MULTIPLE)
        code = refuse(__func__, Code::argument, thread_level_error(requested));
    const auto own = own_flags(flags);
    if (code == 0) code = own.ok() ? npushmemx_init_attr(own.value(), attr) : report_code(__func__, own.status());
    if (code == 0) raise_thread_level(requested);
    if (provided != nullptr) *provided = thread_level();
    if (code != 0 && ends_process != 0) end_program();
    return code;
}

int npushmemx_last_error(const char** message) {
    const Status& last = last_failure();
    if (message != nullptr) *message = last.message().c_str();
    return static_cast<int>(last.code());
}

void npushmemx_clear_error(void) { clear_failure(); }

const char* npushmemx_error_string(int code) {
    switch (static_cast<Code>(code)) {
        case Code::ok: return "success";
        case Code::again: return "not finished yet, call again";
        case Code::argument: return "an argument has an invalid value";
        case Code::range: return "a PE, a size or an index is outside its range";
        case Code::not_symmetric: return "an address is outside symmetric memory";
        case Code::not_initialized: return "the library is not initialized";
        case Code::state: return "the object cannot serve the call in its current state";
        case Code::mismatch: return "PEs gave a collective call different arguments";
        case Code::config: return "a variable or a file of the configuration is wrong";
        case Code::plugin_missing: return "a plugin was not found";
        case Code::plugin_refused: return "a plugin was refused";
        case Code::unsupported: return "the transport or plugin does not support the operation";
        case Code::unreachable: return "a PE cannot be reached";
        case Code::peer_dead: return "a PE has died";
        case Code::timeout: return "the time limit has passed";
        case Code::protocol: return "a peer sent bytes that do not parse or do not authenticate";
        case Code::aborted: return "another PE reported a failure";
        case Code::memory: return "memory or space is exhausted";
        case Code::system: return "a call of the operating system failed";
    }
    return "unknown code";
}

const char* npushmemx_describe_map(void) {
    const Runtime* up = runtime();
    return up != nullptr ? up->reports().map_text().c_str() : "";
}

const char* npushmemx_describe_nics(void) {
    Runtime* up = runtime();
    return up != nullptr ? up->reports().nic_text().c_str() : "";
}

const char* npushmemx_describe_job(void) {
    const Runtime* up = runtime();
    return up != nullptr ? up->reports().job_text().c_str() : "";
}

}  // extern "C"

namespace npushmem::npu {

// Returns the running program's device, for the kernel language.
Device& device() {
    Runtime* up = api::runtime_unnoted();
    if (up == nullptr) throw KernelError(api::not_running());
    auto device = up->npu().device();
    if (!device.ok()) throw KernelError(device.status());
    return *device.value();
}

}  // namespace npushmem::npu

using namespace npushmem;
using namespace npushmem::api;

namespace {

npushmemx_statistics_t to_public(const PeStatistics& now) {
    return {.barriers = now.barriers,
            .timed_barriers = now.timed,
            .barrier_time = now.nanoseconds,
            .longest_barrier = now.longest,
            .last_arrivals = now.last,
            .last_arrival_delay = now.late_nanoseconds,
            .waits = now.waits,
            .wait_time = now.wait_nanoseconds,
            .spins = now.spins,
            .yields = now.yields,
            .sleeps = now.sleeps,
            .parks = now.parks,
            .liveness_checks = now.liveness_checks,
            .wakes = now.wakes};
}

Status null_statistics() { return {Code::argument, "statistics is NULL"}; }

}  // namespace

extern "C" {

int npushmemx_get_statistics(npushmemx_statistics_t* statistics) {
    return code_of_call(__func__, [statistics] {
        Runtime* up = runtime();
        if (up == nullptr) return not_running();
        if (statistics == nullptr) return null_statistics();
        *statistics = to_public(up->reports().statistics());
        return Status{};
    });
}

int npushmemx_team_get_statistics(npushmem_team_t team, npushmemx_statistics_t* statistics) {
    return code_of_call(__func__, [team, statistics] {
        const auto found = team_of(team);
        if (!found.ok()) return found.status();
        if (statistics == nullptr) return null_statistics();
        Runtime* up = runtime();
        const bool world = found.value() == &up->teams().world();
        *statistics =
            to_public(world ? up->reports().statistics() : read_statistics(found.value()->barrier().counts()));
        return Status{};
    });
}

}  // extern "C"
