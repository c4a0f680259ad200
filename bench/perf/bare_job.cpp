// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/bare_job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace npushmem::perf {
namespace {

// As in the start of an empty job on one host: the exchanges of the bootstrap, the first barriers, and the end.
constexpr int barriers = 12;
constexpr std::size_t page = 4096;
constexpr std::size_t pages_of_process = 16;

// The first page of the memory.
struct Shared {
    pthread_barrier_t barrier;
    std::atomic<std::size_t> processes;  // that have taken a number
};

std::size_t bytes_for(int processes) { return page * (1 + pages_of_process * static_cast<std::size_t>(processes)); }

Status failed(const char* attempt) { return {Code::system, fmt::format("{}: {}", attempt, std::strerror(errno))}; }

Result<Shared*> map(int descriptor, int processes) {
    void* const mapped = ::mmap(nullptr, bytes_for(processes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return mapped != MAP_FAILED ? Result<Shared*>(static_cast<Shared*>(mapped))
                                : Result<Shared*>(failed("mapping the memory of the job"));
}

}  // namespace

Result<BareJob> BareJob::create(int processes) {
    FileDescriptor memory(::memfd_create("bare-job", 0));
    if (!memory.valid() || ::ftruncate(memory.get(), static_cast<off_t>(bytes_for(processes))) != 0)
        return failed("creating memory that processes share");
    const auto shared = map(memory.get(), processes);
    if (!shared.ok()) return shared.status();
    pthread_barrierattr_t between_processes;
    ::pthread_barrierattr_init(&between_processes);
    ::pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    ::pthread_barrier_init(&shared.value()->barrier, &between_processes, static_cast<unsigned>(processes));
    ::munmap(shared.value(), bytes_for(processes));
    return BareJob(std::move(memory));
}

Status BareJob::take_part(int descriptor, int processes, const std::vector<std::string>& plugin_files) {
    for (const std::string& file : plugin_files)
        if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) return {Code::plugin_refused, ::dlerror()};
    const auto mapped = map(descriptor, processes);
    if (!mapped.ok()) return mapped.status();
    Shared& shared = *mapped.value();
    const std::size_t own = shared.processes.fetch_add(1, std::memory_order_relaxed);
    std::memset(reinterpret_cast<std::byte*>(&shared) + page * (1 + pages_of_process * own), 1,
                page * pages_of_process);
    for (int i = 0; i < barriers; ++i) ::pthread_barrier_wait(&shared.barrier);
    return {};
}

}  // namespace npushmem::perf
