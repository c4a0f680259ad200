// One counter per rank in memory that all ranks of one host see, found through the job under test itself. It shows what
// the bootstrap cannot be asked about: who had come when.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::contract {

class SharedCounters {
public:
    // Collective. The file has no name any more when it returns.
    static Result<SharedCounters> make(Bootstrap& job) {
        Name mine{};
        int file = -1;
        if (job.rank() == 0) {
            std::string name = "/dev/shm/test-contract-XXXXXX";
            file = ::mkstemp(name.data());
            if (file < 0 || ::ftruncate(file, bytes_of(job)) != 0) return failure("make", name);
            name.copy(mine.data(), mine.size() - 1);
        }
        std::vector<Name> all(static_cast<std::size_t>(job.nranks()));
        Status gathered = job.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
        if (!gathered.ok()) return gathered;
        if (job.rank() != 0) file = ::open(all[0].data(), O_RDWR | O_CLOEXEC);
        if (file < 0) return failure("open", all[0].data());
        void* const mapping = ::mmap(nullptr, bytes_of(job), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ::close(file);
        Status status = job.barrier();
        if (job.rank() == 0) ::unlink(mine.data());
        if (mapping == MAP_FAILED) return failure("map", all[0].data());
        SharedCounters made(mapping, bytes_of(job));
        return status.ok() ? Result<SharedCounters>(std::move(made)) : Result<SharedCounters>(status);
    }
    SharedCounters(SharedCounters&& other) noexcept
        : mapping_(std::exchange(other.mapping_, nullptr)), bytes_(other.bytes_) {}
    SharedCounters(const SharedCounters&) = delete;
    SharedCounters& operator=(const SharedCounters&) = delete;
    ~SharedCounters() {
        if (mapping_ != nullptr) ::munmap(mapping_, static_cast<std::size_t>(bytes_));
    }

    // Sequentially consistent, all of them: the order of the counters' changes is what is tested.
    [[nodiscard]] std::atomic_ref<std::uint64_t> of(int rank) const {
        return std::atomic_ref(static_cast<std::uint64_t*>(mapping_)[rank]);
    }

private:
    using Name = std::array<char, 64>;

    SharedCounters(void* mapping, off_t bytes) : mapping_(mapping), bytes_(bytes) {}
    static off_t bytes_of(const Bootstrap& job) { return static_cast<off_t>(sizeof(std::uint64_t)) * job.nranks(); }
    static Status failure(const char* what, const std::string& name) {
        return {Code::system, fmt::format("cannot {} {}: {}", what, name, std::strerror(errno))};
    }

    void* mapping_;
    off_t bytes_;
};

}  // namespace npushmem::contract
