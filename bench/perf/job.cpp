#include "bench/perf/job.hpp"

#include <algorithm>
#include <cstring>

#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::perf {

Status library_failure() {
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    if (code == 0) return {};
    return {static_cast<Code>(code), message};
}

void SymmetricFree::operator()(void* memory) const { npushmem_free(memory); }

Result<std::unique_ptr<Job>> Job::start() {
    int provided = 0;
    if (npushmem_init_thread(NPUSHMEM_THREAD_SINGLE, &provided) != 0) {
        return library_failure().within("start the library (run the program under npushmem-run -n N)");
    }
    return std::unique_ptr<Job>(new Job(npushmem_my_pe(), npushmem_n_pes()));
}

Job::~Job() { npushmem_finalize(); }

void Job::barrier() { npushmem_barrier_all(); }

void* allocate_symmetric(std::size_t bytes) {
    constexpr std::size_t alignment = 128;
    void* memory = npushmem_align(alignment, std::max(bytes, alignment));
    if (memory != nullptr) std::memset(memory, 0, bytes);
    Job::barrier();
    return memory;
}

Result<std::vector<double>> Job::allgather(const std::vector<double>& own) const {
    const std::size_t count = own.size();
    auto gathered = make_symmetric<double>(count * static_cast<std::size_t>(pes_));
    if (!gathered.ok()) return gathered.status();
    double* mine = gathered.value().get() + count * static_cast<std::size_t>(pe_);
    for (int pe = 0; pe < pes_; ++pe) npushmem_putmem(mine, own.data(), count * sizeof(double), pe);
    barrier();
    std::vector<double> values(count * static_cast<std::size_t>(pes_));
    std::copy_n(gathered.value().get(), values.size(), values.begin());
    return values;
}

}  // namespace npushmem::perf
