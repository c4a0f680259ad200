// SPDX-License-Identifier: BSD-3-Clause
// Host operations in the order of a stream: between kernels, asynchronous to the host, with failures that stay.
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "npushmem.h"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/on_stream.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/api/programs/kernels.hpp"

namespace npushmem::api_test {
namespace {

constexpr std::uint64_t words = 64;
constexpr std::uint64_t rounds = 5;

std::uint64_t* calloc_words(std::size_t count) {
    return static_cast<std::uint64_t*>(npushmem_calloc(count, sizeof(std::uint64_t)));
}

std::uint64_t mark(int pe, std::uint64_t round) { return static_cast<std::uint64_t>(pe) * 1000 + round; }

void launch(Checker& check, npu::Stream& stream, const std::function<void(npu::Core&)>& on_one_core) {
    const Status done = npu::launch(stream, 1, [on_one_core](npu::Core& core) {
        if (core.index() == 0) on_one_core(core);
    });
    check.equal("launch", std::string(), done.message());
}

// A kernel writes, the stream sends, the peer's stream waits, a kernel reads, all without the host.
void test_order(Checker& check, const Job& job, npu::Stream& stream) {
    npushmemx_stream_t handle = npu::handle_of(stream);
    std::uint64_t* source = calloc_words(words);
    std::uint64_t* dest = calloc_words(words);
    std::uint64_t* signal = calloc_words(1);
    std::vector<std::uint64_t> seen(rounds, 0);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        launch(check, stream, [=](npu::Core& core) {
            for (std::uint64_t i = 0; i < words; ++i) core.store(source + i, mark(core.my_pe(), round));
            core.dcci(source, words * sizeof *source);
        });
        check.equal("put", 0,
                    npushmemx_putmem_signal_on_stream(dest, source, words * sizeof *dest, signal, round,
                                                      NPUSHMEM_SIGNAL_OP_SET, job.right(), handle));
        check.equal("wait", 0, npushmemx_signal_wait_until_on_stream(signal, NPUSHMEM_CMP_GE, round, handle));
        launch(check, stream, [=, &seen](npu::Core& core) {
            core.dcci(dest, words * sizeof *dest);
            for (std::uint64_t i = 0; i < words; ++i) seen[round - 1] += core.load(dest + i);
        });
        check.equal("barrier", 0, npushmemx_barrier_all_on_stream(handle));
    }
    check.equal("synchronize", 0, npushmemx_stream_synchronize(handle));
    for (std::uint64_t round = 1; round <= rounds; ++round)
        check.equal("what the kernel saw", words * mark(job.left(), round), seen[round - 1]);
    npushmem_free(signal);
    npushmem_free(dest);
    npushmem_free(source);
}

// The host continues while the stream waits for the host's next action.
void test_asynchrony(Checker& check, const Job& job, npushmemx_stream_t stream) {
    std::uint64_t* signal = calloc_words(1);
    std::uint64_t* got = calloc_words(1);
    check.equal("wait", 0, npushmemx_signal_wait_until_on_stream(signal, NPUSHMEM_CMP_EQ, 7, stream));
    check.equal("get", 0, npushmemx_getmem_on_stream(got, signal, sizeof *got, job.me, stream));
    npushmem_uint64_atomic_set(signal, 7, job.me);
    check.equal("synchronize", 0, npushmemx_stream_synchronize(stream));
    check.equal("got behind the wait", std::uint64_t{7}, *got);
    npushmem_free(got);
    npushmem_free(signal);
}

void test_collectives(Checker& check, const Job& job, npushmemx_stream_t stream) {
    const auto n = static_cast<std::size_t>(job.npes);
    constexpr std::size_t bytes = sizeof(std::uint64_t);
    std::uint64_t* source = calloc_words(n);
    std::uint64_t* dest = calloc_words(4 * n);
    for (std::size_t i = 0; i < n; ++i) source[i] = mark(job.me, i);
    npushmem_barrier_all();
    const npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    check.equal("broadcast", 0, npushmemx_broadcastmem_on_stream(team, dest, source, bytes, job.npes - 1, stream));
    check.equal("fcollect", 0, npushmemx_fcollectmem_on_stream(team, dest + n, source, bytes, stream));
    check.equal("alltoall", 0, npushmemx_alltoallmem_on_stream(team, dest + 2 * n, source, bytes, stream));
    check.equal("collect", 0, npushmemx_collectmem_on_stream(team, dest + 3 * n, source, bytes, stream));
    check.equal("barrier", 0, npushmemx_barrier_on_stream(team, stream));
    check.equal("synchronize", 0, npushmemx_stream_synchronize(stream));
    check.equal("broadcast", job.npes > 1 || dest[0] != 0 ? mark(job.npes - 1, 0) : dest[0], dest[0]);
    for (int pe = 0; pe < job.npes; ++pe) {
        const auto i = static_cast<std::size_t>(pe);
        check.equal("fcollect", mark(pe, 0), dest[n + i]);
        check.equal("alltoall", mark(pe, static_cast<std::uint64_t>(job.me)), dest[2 * n + i]);
        check.equal("collect", mark(pe, 0), dest[3 * n + i]);
    }
    npushmem_free(dest);
    npushmem_free(source);
}

// A stream keeps its failure until synchronize and skips later operations; then it works again.
void test_failures(Checker& check, const Job& job, npu::Stream& stream) {
    npushmemx_stream_t handle = npu::handle_of(stream);
    std::uint64_t* word = calloc_words(1);
    const std::uint64_t value = 5;
    bool ran = false;
    check.equal("put to nobody", 0, npushmemx_putmem_on_stream(word, &value, sizeof value, job.npes, handle));
    launch(check, stream, [&ran](npu::Core&) { ran = true; });
    check.equal("its failure", int{NPUSHMEM_E_RANGE}, npushmemx_stream_synchronize(handle));
    check.failed_with("synchronize", NPUSHMEM_E_RANGE, {"npushmemx_putmem_on_stream", "does not exist"});
    check.that("what was behind the failure has not run", !ran);
    check.equal("put to oneself", 0, npushmemx_putmem_on_stream(word, &value, sizeof value, job.me, handle));
    check.equal("afterwards", 0, npushmemx_stream_synchronize(handle));
    check.equal("what was put", value, *word);
    check.equal("no such team", 0, npushmemx_barrier_on_stream(NPUSHMEM_TEAM_INVALID, handle));
    check.that("no such team", npushmemx_stream_synchronize(handle) != 0);
    check.equal("no comparison", int{NPUSHMEM_E_ARGUMENT}, npushmemx_signal_wait_until_on_stream(word, 99, 0, handle));
    check.failed_with("comparison", NPUSHMEM_E_ARGUMENT, {"npushmemx_signal_wait_until_on_stream", "comparison 99"});
    check.equal("no word", int{NPUSHMEM_E_ARGUMENT},
                npushmemx_signal_wait_until_on_stream(nullptr, NPUSHMEM_CMP_EQ, 0, handle));
    check.equal("the default stream stays", int{NPUSHMEM_E_ARGUMENT}, npushmemx_stream_destroy(nullptr));
    check.equal("no place", int{NPUSHMEM_E_ARGUMENT}, npushmemx_stream_create(nullptr));
    npushmemx_clear_error();
    npushmem_free(word);
}

// Kernels that cannot run or do not end: each reports its error, and the device runs the next one.
void test_bad_kernels(Checker& check, npu::Stream& stream) {
    const auto expect = [&](const char* what, Code code, const char* word, npu::LaunchConfig config, auto kernel) {
        Status status = npu::launch(stream, config, kernel);
        if (status.ok()) status = stream.synchronize();
        check.equal(what, static_cast<int>(code), static_cast<int>(status.code()));
        check.that(what, status.message().find(word) != std::string::npos);
        bool ran = false;
        launch(check, stream, [&ran](npu::Core&) { ran = true; });
        check.equal("afterwards", std::string(), stream.synchronize().message());
        check.that("the next kernel has run", ran);
    };
    const auto nothing = [](npu::Core&) {};
    const int most = npu::device().config().blocks;
    expect("no blocks", Code::range, "block_dim 0 must be 1 to", 0, nothing);
    expect("too many blocks", Code::range, "the device's number of blocks", most + 1, nothing);
    expect("more UB than there is", Code::memory, "UB", 1,
           [](npu::Core& core) { static_cast<void>(core.ub_alloc<std::byte>(std::size_t{1} << 20)); });
    expect("a kernel that throws", Code::aborted, "the kernel threw: on purpose", 1,
           [](npu::Core&) { throw std::runtime_error("on purpose"); });
    std::uint64_t* word = calloc_words(1);
    npu::LaunchConfig limited(1);
    limited.timeout = std::chrono::milliseconds(20);
    expect("a kernel that never ends", Code::timeout, "== 77, last saw 0", limited,
           [word](npu::Core& core) { core.signal_wait_until(word, npu::Compare::equal, 77); });
    npushmem_free(word);
}

// After finalize there is no device, and old streams reject operations.
int use_after_the_end(npu::Stream& kept) {
    try {
        static_cast<void>(npu::device());
        return 1;
    } catch (const npu::KernelError& error) {
        if (error.code() != Code::not_initialized) return 1;
    }
    return npu::launch(kept, 1, [](npu::Core&) {}).code() == Code::state ? 0 : 1;
}

void test_streams(Checker& check, const Job& job) {
    npu::Stream& standard = npu::device().default_stream();
    test_order(check, job, standard);
    npushmemx_stream_t own = nullptr;
    check.equal("create", 0, npushmemx_stream_create(&own));
    test_asynchrony(check, job, own);
    test_asynchrony(check, job, nullptr);
    test_collectives(check, job, own);
    check.equal("destroy", 0, npushmemx_stream_destroy(own));
    test_failures(check, job, standard);
    test_kernels(check, job, standard);
    test_bad_kernels(check, standard);
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    const int before = npushmemx_barrier_all_on_stream(nullptr);
    npushmemx_clear_error();
    std::optional<npushmem::npu::Stream> kept;
    const int status = npushmem::api_test::run_family("streams", [&](auto& check, const auto& job) {
        kept.emplace(npushmem::npu::device());
        check.equal("before init", int{NPUSHMEM_E_NOT_INITIALIZED}, before);
        npushmem::api_test::test_streams(check, job);
    });
    return status != 0 ? status : npushmem::api_test::use_after_the_end(*kept);
}
