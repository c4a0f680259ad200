// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/bare_job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
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
constexpr std::size_t pages_of_process = 16;  // the first ones are for the variables

// As many pages as the variables of this program have in an empty job.
constexpr std::size_t pages_of_variables = 7;
alignas(page) std::array<std::byte, pages_of_variables * page> variables;

void touch_variables() {
    for (std::size_t at = 0; at < variables.size(); at += page) variables[at] ^= std::byte{1};
}

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

// From here on `variables` are the pages of the job's memory at `offset`.
Status share_variables(int descriptor, std::size_t offset) {
    const auto size = static_cast<ssize_t>(variables.size());
    if (::pwrite(descriptor, variables.data(), variables.size(), static_cast<off_t>(offset)) != size)
        return failed("writing variables to the memory of the job");
    void* const shared = ::mmap(variables.data(), variables.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                descriptor, static_cast<off_t>(offset));
    return shared != MAP_FAILED ? Status{} : failed("sharing variables");
}

// Replaces `variables` by a copy for this process alone.
Status restore_variables() {
    void* const copy = ::mmap(nullptr, variables.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return failed("allocating a copy of variables");
    std::memcpy(copy, variables.data(), variables.size());
    const void* const moved =
        ::mremap(copy, variables.size(), variables.size(), MREMAP_MAYMOVE | MREMAP_FIXED, variables.data());
    return moved != MAP_FAILED ? Status{} : failed("restoring variables");
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
    const std::size_t offset = page * (1 + pages_of_process * own);
    touch_variables();  // as the program has used its own
    if (Status done = share_variables(descriptor, offset); !done.ok()) return done;
    std::memset(reinterpret_cast<std::byte*>(&shared) + offset + variables.size(), 1,
                page * pages_of_process - variables.size());
    touch_variables();
    for (int i = 0; i < barriers; ++i) ::pthread_barrier_wait(&shared.barrier);
    if (Status done = restore_variables(); !done.ok()) return done;
    return ::munmap(&shared, bytes_for(processes)) == 0 ? Status{} : failed("removing the memory of the job");
}

}  // namespace npushmem::perf
