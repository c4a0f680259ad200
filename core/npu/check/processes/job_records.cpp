// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/processes/job_records.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace npushmem::npu::check {
namespace {

static_assert(sizeof(JobRecords) <= JobRecords::header_bytes);

void* const records_at = reinterpret_cast<void*>(shared_arena_address - JobRecords::header_bytes);

}  // namespace

void join(SharedClock& clock, const SharedClock& other) {
    if (other.size() > clock.size()) clock.resize(other.size());
    for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

void JobContent::add_ended(Ended launch) {
    const auto same = std::ranges::find_if(
        ended, [&](const Ended& one) { return one.pe == launch.pe && one.before == launch.before; });
    if (same == ended.end()) return ended.push_back(std::move(launch));
    same->begun = std::min(same->begun, launch.begun);
    same->unrecorded = same->unrecorded || launch.unrecorded;
    join(same->clock, launch.clock);
}

JobContent::Cores& JobContent::acquire_cores(int pe, std::uint32_t count) {
    const auto found = std::ranges::find_if(
        cores, [&](const Cores& one) { return one.pe == pe && !one.running && one.count >= count; });
    if (found != cores.end()) return *found;
    cores.push_back({pe, next_core, count});
    next_core += count;
    return cores.back();
}

JobContent::Cores* JobContent::cores_with(std::uint32_t core) {
    const auto found = std::ranges::find_if(cores, [core](const Cores& one) { return core - one.first < one.count; });
    return found == cores.end() ? nullptr : &*found;
}

bool JobContent::outdated(std::uint64_t host_barrier) const {
    return std::ranges::none_of(cores, &Cores::running) &&
           std::ranges::all_of(ended, [host_barrier](const Ended& one) { return one.before <= host_barrier; });
}

JobRecords::JobRecords() {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex_, &kind);
    pthread_mutexattr_destroy(&kind);
    std::byte* const begin = reinterpret_cast<std::byte*>(this);
    new (begin + header_bytes) SharedArena(begin + first_bytes, begin + bytes);
    clear();
}

std::shared_ptr<JobRecords> JobRecords::map(int descriptor) {
    void* const there =
        mmap(records_at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor, 0);
    if (there == MAP_FAILED) return nullptr;
    const auto unmap = [](void* memory) { munmap(memory, bytes); };
    // A kernel that does not know MAP_FIXED_NOREPLACE takes the address for a hint.
    if (there != records_at) {
        unmap(there);
        return nullptr;
    }
    return {static_cast<JobRecords*>(there), unmap};
}

bool JobRecords::make(int descriptor) {
    const auto mapped = map(descriptor);
    if (mapped) new (mapped.get()) JobRecords;
    return mapped != nullptr;
}

void JobRecords::clear() {
    shared_arena().reset();
    content_ = new (shared_arena().allocate(sizeof(JobContent))) JobContent;
}

JobLock::JobLock(JobRecords& records) : records_(&records) {
    const int locked = pthread_mutex_lock(&records.mutex_);
    if (locked == 0) return;
    records.switch_off();
    // The owner has ended, and may have left the records half written.
    if (locked == EOWNERDEAD) pthread_mutex_consistent(&records.mutex_);
    if (locked != EOWNERDEAD) records_ = nullptr;
}

JobLock::~JobLock() {
    if (records_ != nullptr) pthread_mutex_unlock(&records_->mutex_);
}

}  // namespace npushmem::npu::check
