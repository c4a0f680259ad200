// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/bare_job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace npushmem::perf {
namespace {

// As in the start of an empty job on one host: the exchanges of the bootstrap, the first barriers, and the end.
constexpr std::uint32_t meetings = 12;
constexpr std::size_t page = 4096;
constexpr std::size_t pages_of_process = 16;

// The first page of the memory.
struct Meeting {
    std::atomic<std::uint32_t> processes;  // that have taken a number
    std::atomic<std::uint32_t> arrived;    // in all meetings
    std::atomic<std::uint32_t> passed;     // meetings
};

std::size_t bytes_for(int processes) { return page * (1 + pages_of_process * static_cast<std::size_t>(processes)); }

Status failed(const char* attempt) { return {Code::system, fmt::format("{}: {}", attempt, std::strerror(errno))}; }

void meet(Meeting& meeting, std::uint32_t number, std::uint32_t processes) {
    auto* const word = reinterpret_cast<std::uint32_t*>(&meeting.passed);
    if (meeting.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == (number + 1) * processes) {
        meeting.passed.store(number + 1, std::memory_order_release);
        (void)::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
        return;
    }
    while (meeting.passed.load(std::memory_order_acquire) == number)
        (void)::syscall(SYS_futex, word, FUTEX_WAIT, number, nullptr, nullptr, 0);
}

}  // namespace

Result<BareJob> BareJob::create(int processes) {
    FileDescriptor memory(::memfd_create("bare-job", 0));
    if (!memory.valid() || ::ftruncate(memory.get(), static_cast<off_t>(bytes_for(processes))) != 0)
        return failed("creating memory that processes share");
    return BareJob(std::move(memory));
}

Status BareJob::take_part(int descriptor, int processes, const std::vector<std::string>& plugin_files) {
    for (const std::string& file : plugin_files)
        if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) return {Code::plugin_refused, ::dlerror()};
    void* const mapped = ::mmap(nullptr, bytes_for(processes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) return failed("mapping the memory of the job");
    Meeting& meeting = *static_cast<Meeting*>(mapped);
    const std::uint32_t own = meeting.processes.fetch_add(1, std::memory_order_relaxed);
    std::memset(static_cast<std::byte*>(mapped) + page * (1 + pages_of_process * own), 1, page * pages_of_process);
    for (std::uint32_t i = 0; i < meetings; ++i) meet(meeting, i, static_cast<std::uint32_t>(processes));
    return {};
}

}  // namespace npushmem::perf
