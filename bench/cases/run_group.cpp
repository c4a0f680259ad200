#include "bench/cases/run_group.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/cases/case.hpp"
#include "bench/cases/job_worker_group.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::bench {
namespace {

struct FreeSymmetric {
    void operator()(std::byte* memory) const { npushmem_free(memory); }
};
using SymmetricBytes = std::unique_ptr<std::byte, FreeSymmetric>;

Status library_failure() {
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    return code == 0 ? Status{} : Status{static_cast<Code>(code), message};
}

Result<SymmetricBytes> allocate(std::size_t bytes) {
    constexpr std::size_t alignment = 2U << 20;
    SymmetricBytes memory(static_cast<std::byte*>(npushmem_align(alignment, bytes)));
    if (!memory) return library_failure();
    std::memset(memory.get(), 0, bytes);
    npushmem_barrier_all();
    return memory;
}

// Mapping is by host, so a PE that maps all is on the only one.
bool maps_all(const std::byte* memory, int pes) {
    bool all = true;
    for (int pe = 0; pe < pes && all; ++pe) all = npushmem_ptr(memory, pe) != nullptr;
    return all;
}

Arena arena_at(std::byte* memory) {
    Arena arena{.pe = npushmem_my_pe(), .pes = npushmem_n_pes(), .own = memory};
    arena.peer = (arena.pe + 1) % arena.pes;
    arena.mapped = static_cast<std::byte*>(npushmem_ptr(memory, arena.peer));
    arena.all_mapped = maps_all(memory, arena.pes);
    return arena;
}

PointResult run_point(const Point& point, Engine& engine, JobWorkerGroup& worker_group) {
    if (point.shared) return engine.measure(point, worker_group);
    PointResult result;
    SoloWorkerGroup solo;
    if (worker_group.is_leader()) result = engine.measure(point, solo);
    if (worker_group.is_leader())
        worker_group.broadcast({});
    else
        (void)worker_group.receive();
    return result;
}

// A case that this job is not made for throws when it is asked for its points.
Status run_case(const Case& c, Engine& engine, JobWorkerGroup& worker_group, std::vector<PointResult>& results) try {
    auto memory = allocate(c.bytes);
    if (!memory.ok()) return memory.status();
    for (const Point& point : c.points(arena_at(memory.value().get()))) {
        PointResult result = run_point(point, engine, worker_group);
        if (Status status = library_failure(); !status.ok()) return status.within(point.name);
        results.push_back(std::move(result));
    }
    return {};
} catch (const std::runtime_error& error) {
    return {Code::state, error.what()};
}

}  // namespace

Result<std::vector<PointResult>> run_group(std::string_view group, Engine& engine) {
    auto command_word = allocate(sizeof(std::uint64_t));
    if (!command_word.ok()) return command_word.status();
    JobWorkerGroup worker_group(reinterpret_cast<std::uint64_t*>(command_word.value().get()));
    std::vector<PointResult> results;
    for (const Case& c : all_cases()) {
        if (c.group != group) continue;
        if (Status status = run_case(c, engine, worker_group, results); !status.ok()) return status;
    }
    return results;
}

}  // namespace npushmem::bench
