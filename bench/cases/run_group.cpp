// SPDX-License-Identifier: BSD-3-Clause
// Runs the cases of one group on all PEs of the job.
#include "bench/cases/run_group.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/cases/case.hpp"
#include "bench/engine/engine.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::bench {

// The PEs of the job as the engine's worker group. PE 0 is the leader.
class JobWorkerGroup final : public WorkerGroup {
public:
    // `command_word`: a symmetric word, zero.
    explicit JobWorkerGroup(std::uint64_t* command_word);

    [[nodiscard]] bool is_leader() const override { return pe_ == 0; }
    void broadcast(const BatchCommand& command) override;
    BatchCommand receive() override;

private:
    std::uint64_t* command_word_;
    int pe_;
    int pes_;
};

namespace {

constexpr int half_word = 32;

std::uint64_t word_of(const BatchCommand& command) {
    return static_cast<std::uint64_t>(command.variant) << half_word | command.iterations;
}

BatchCommand command_of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> half_word), static_cast<std::uint32_t>(word)};
}

}  // namespace

JobWorkerGroup::JobWorkerGroup(std::uint64_t* command_word)
    : command_word_(command_word), pe_(npushmem_my_pe()), pes_(npushmem_n_pes()) {}

// The first barrier shows that all have read the previous command; the second, that all can read this one.
void JobWorkerGroup::broadcast(const BatchCommand& command) {
    npushmem_barrier_all();
    for (int pe = 1; pe < pes_; ++pe) npushmem_uint64_p(command_word_, word_of(command), pe);
    npushmem_barrier_all();
}

BatchCommand JobWorkerGroup::receive() {
    npushmem_barrier_all();
    npushmem_barrier_all();
    // After a failure the barriers no longer synchronise the PEs, and the word may hold anything.
    return npushmemx_last_error(nullptr) == 0 ? command_of(*command_word_) : BatchCommand{};
}

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

// Only PEs of the same host map each other, so a PE that maps all PEs is on the only host.
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

// A case that does not fit this job throws from points().
Status run_case(const Case& c, Engine& engine, JobWorkerGroup& worker_group, ProgressLine& progress,
                std::vector<PointResult>& results) try {
    auto memory = allocate(c.bytes);
    if (!memory.ok()) return memory.status();
    const auto points = c.points(arena_at(memory.value().get()));
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& point = points[i];
        progress.begin_step("measuring " + point.name, i, points.size());
        PointResult result = run_point(point, engine, worker_group);
        if (Status status = library_failure(); !status.ok()) return status.within(point.name);
        results.push_back(std::move(result));
    }
    return {};
} catch (const std::runtime_error& error) {
    return {Code::state, error.what()};
}

}  // namespace

Result<std::vector<PointResult>> run_group(std::string_view group, Engine& engine, ProgressLine& progress) {
    auto command_word = allocate(sizeof(std::uint64_t));
    if (!command_word.ok()) return command_word.status();
    JobWorkerGroup worker_group(reinterpret_cast<std::uint64_t*>(command_word.value().get()));
    std::vector<PointResult> results;
    auto cases = all_cases();
    std::erase_if(cases, [&](const Case& c) { return c.group != group; });
    for (std::size_t i = 0; i < cases.size(); ++i) {
        progress.begin_part(i, cases.size());
        if (Status status = run_case(cases[i], engine, worker_group, progress, results); !status.ok()) return status;
    }
    return results;
}

}  // namespace npushmem::bench
