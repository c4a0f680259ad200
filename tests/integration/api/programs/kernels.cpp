// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/api/programs/kernels.hpp"

#include <functional>
#include <vector>

#include "npushmem.h"

namespace npushmem::api_test {
namespace {

using npu::BarrierState;
using npu::Compare;
using npu::Core;
using npu::TeamView;

constexpr std::size_t words = 64;
constexpr std::uint64_t rounds = 4;

// Symmetric, zeroed and aligned to a cache line.
template <class T>
T* allocate(std::size_t count) {
    auto* memory = static_cast<T*>(npushmem_align(npu::cache_line, count * sizeof(T)));
    std::memset(static_cast<void*>(memory), 0, count * sizeof(T));
    npushmem_barrier_all();
    return memory;
}

std::uint64_t mark(int pe, std::uint64_t round, std::size_t index) {
    return static_cast<std::uint64_t>(pe) * 1000000 + round * 1000 + index;
}

// The host reports the errors of kernels; one thread at a time runs them.
class Kernels {
public:
    Kernels(Checker& check, npu::Stream& stream) : check_(check), stream_(stream) {}

    void run(const char* what, const std::function<void(Core&)>& kernel) {
        Status done = npu::launch(stream_, 1, [&kernel](Core& core) { kernel(core); });
        if (done.ok()) done = stream_.synchronize();
        check_.equal(what, std::string(), done.message());
        for (const std::string& wrong : wrong_) check_.fail(std::string(what) + ": " + wrong);
        wrong_.clear();
    }
    void on_one_core(const char* what, const std::function<void(Core&)>& kernel) {
        run(what, [&kernel](Core& core) {
            if (core.index() == 0) kernel(core);
        });
    }
    void expect(const char* what, std::uint64_t expected, std::uint64_t seen) {
        if (expected != seen) wrong_.push_back(fmt::format("{}: expected {}, saw {}", what, expected, seen));
    }

private:
    Checker& check_;
    npu::Stream& stream_;
    std::vector<std::string> wrong_;
};

// Data with a signal goes around a ring; the reader acknowledges it.
void test_ring(Kernels& kernels, const Job& job) {
    auto* source = allocate<std::uint64_t>(words);
    auto* data = allocate<std::uint64_t>(words);
    auto* arrived = allocate<std::uint64_t>(8);
    auto* read = allocate<std::uint64_t>(8);
    kernels.on_one_core("a ring of puts with signals", [&](Core& core) {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            for (std::size_t i = 0; i < words; ++i) core.store(source + i, mark(job.me, round, i));
            core.dcci(source, words * sizeof *source);
            core.put_signal(data, source, words, arrived, round, job.right());
            core.signal_wait_until(arrived, Compare::greater_equal, round, job.left());
            core.dcci(data, words * sizeof *data);
            for (std::size_t i = 0; i < words; ++i)
                kernels.expect("put", mark(job.left(), round, i), core.load(data + i));
            core.signal_wait_until_on(arrived, Compare::greater_equal, round, job.right());
            core.signal_add_on(read, 1, job.left());
            core.signal_wait_until(read, Compare::greater_equal, round, job.right());
        }
    });
    for (std::uint64_t* memory : {read, arrived, data, source}) npushmem_free(memory);
}

void test_gets_and_atomics(Kernels& kernels, const Job& job) {
    auto* data = allocate<std::uint64_t>(words);
    auto* got = allocate<std::uint64_t>(words);
    auto* counters = allocate<std::uint64_t>(16);
    auto* narrow = allocate<std::int32_t>(16);
    for (std::size_t i = 0; i < words; ++i) data[i] = mark(job.me, 7, i);
    npushmem_barrier_all();
    kernels.on_one_core("gets and atomics", [&](Core& core) {
        core.get(got, data, words, job.right());
        core.quiet();
        core.dcci(got, words * sizeof *got);
        for (std::size_t i = 0; i < words; ++i) kernels.expect("get", mark(job.right(), 7, i), core.load(got + i));
        for (std::uint64_t i = 0; i < rounds; ++i) core.atomic_fetch_add_on(counters, 1, 0);
        core.atomic_fetch_add_on(narrow, -1, 0);
        kernels.expect("swap", 0, core.atomic_swap_on(counters + 8, 5, job.right()));
        kernels.expect("compare and swap", 5, core.atomic_compare_swap_on(counters + 8, 5, 6, job.right()));
        kernels.expect("what it left", 6, core.signal_fetch_on(counters + 8, job.right()));
    });
    npushmem_barrier_all();
    kernels.on_one_core("what all have added", [&](Core& core) {
        const auto n = static_cast<std::uint64_t>(job.npes);
        kernels.expect("64 bits", n * rounds, core.signal_fetch_on(counters, 0));
        kernels.expect("32 bits", n, static_cast<std::uint64_t>(-core.atomic_fetch_add_on(narrow, 0, 0)));
    });
    npushmem_barrier_all();
    for (void* memory :
         {static_cast<void*>(narrow), static_cast<void*>(counters), static_cast<void*>(got), static_cast<void*>(data)})
        npushmem_free(memory);
}

// Kernels access their own PE's memory directly over any transport: a load sees a put.
void test_own_memory(Kernels& kernels, const Job& job) {
    auto* source = allocate<std::uint64_t>(words);
    auto* data = allocate<std::uint64_t>(words);
    kernels.on_one_core("its own memory", [&](Core& core) {
        for (std::size_t i = 0; i < words; ++i) core.store(source + i, mark(job.me, 8, i));
        core.dcci(source, words * sizeof *source);
        core.put(data, source, words, job.me);
        core.set_flag<npu::Pipe::copy_out, npu::Pipe::scalar>(0);
        core.wait_flag<npu::Pipe::copy_out, npu::Pipe::scalar>(0);
        for (std::size_t i = 0; i < words; ++i) kernels.expect("own put", mark(job.me, 8, i), core.load(data + i));
    });
    npushmem_free(data);
    npushmem_free(source);
}

// A kernel that polls by loads: incoming data must still arrive.
void test_polling(Kernels& kernels, const Job& job) {
    auto* word = allocate<std::uint64_t>(8);
    kernels.on_one_core("a loop of its own", [&](Core& core) {
        core.signal_set_on(word, 3, job.right());
        do core.dcci(word);
        while (core.load(word) != 3);
    });
    npushmem_barrier_all();
    npushmem_free(word);
}

// Each PE writes to its neighbour before a barrier, and reads its other neighbour's word after it.
void test_barriers(Kernels& kernels, const Job& job) {
    auto* state = allocate<BarrierState>(1);
    auto* across = allocate<npu::ServerBarrierState>(1);
    auto* flag = allocate<std::uint64_t>(8);
    const TeamView world{0, 1, job.npes};
    const int per_server = job.npes % 2 == 0 ? job.npes / 2 : job.npes;
    const auto check_barrier = [&](const char* name, const std::function<void(Core&)>& barrier) {
        kernels.run(name, [&](Core& core) {
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                if (core.index() == 0) core.signal_set_on(flag, round, job.right());
                barrier(core);
                if (core.index() == 0) kernels.expect("signal_fetch", round, core.signal_fetch(flag));
                barrier(core);
            }
        });
        npushmem_barrier_all();
    };
    for (const char* text : {"v1", "v2:3", "v3", "auto"}) {
        const npu::BarrierChoice choice = npu::BarrierChoice::parse(text).value();
        check_barrier(text, [&](Core& core) { npu::barrier_with_choice(core, choice, world, state); });
    }
    check_barrier("across servers", [&](Core& core) { npu::barrier_servers(core, world, per_server, across); });
    npushmem_free(flag);
    npushmem_free(across);
    npushmem_free(state);
}

void test_scalar_access(Checker& check, Kernels& kernels, const Job& job) {
    auto* word = allocate<std::uint64_t>(8);
    kernels.on_one_core("scalar access", [&](Core& core) {
        const bool mapped = job.right() == job.me || core.fabric().remote(word, job.right()) != nullptr;
        try {
            kernels.expect("load", 0, core.load(core.remote(word, job.right())));
            check.that("what is not mapped is refused", mapped);
        } catch (const npu::KernelError& error) {
            check.that("what is mapped is loaded", !mapped);
            check.equal("refusal", static_cast<int>(Code::unreachable), static_cast<int>(error.code()));
            const std::string text = error.what();
            check.that("says what instead", text.find("is not mapped here; use put, get") != std::string::npos);
        }
    });
    npushmem_barrier_all();
    npushmem_free(word);
}

// Checked mode detects hazards between processes; the kernels contain deliberate errors.
void test_hazards(Checker& check, const Job& job, npu::Stream& stream) {
    auto* data = allocate<std::uint64_t>(8);
    auto* cached = allocate<std::uint64_t>(8);
    auto* arrived = allocate<std::uint64_t>(8);
    const auto found = [&](const char* hazard, const std::function<void(Core&)>& kernel) {
        Status done = npu::launch(stream, 1, [&kernel](Core& core) { kernel(core); });
        if (done.ok()) done = stream.synchronize();
        check.equal(hazard, static_cast<int>(Code::protocol), static_cast<int>(done.code()));
        check.that(hazard, done.message().find(std::string(hazard) + " in this launch") != std::string::npos);
        check.that(hazard, done.message().find("kernels.cpp:") != std::string::npos);
        npushmem_barrier_all();
    };
    // One core caches the line, the other one sees to it that a peer writes there afterwards.
    found("H7", [&](Core& core) {
        if (core.index() == 0) static_cast<void>(core.load(data));
        core.core_barrier();
        if (core.index() == 1) {
            core.signal_set_on(cached, 1, job.left());
            core.signal_wait_until(cached, Compare::equal, 1, job.right());
            core.signal_set_on(data, 5, job.right());
            core.fence();
            core.signal_set_on(arrived, 1, job.right());
        }
        if (core.index() != 0) return;
        core.signal_wait_until(arrived, Compare::equal, 1, job.left());
        static_cast<void>(core.load(data));
    });
    if (job.npes > 1) {
        found("H8", [&](Core& core) {
            if (core.index() != 0) return;
            core.put(data, cached, 1, job.right());
            core.signal_set_on(arrived, 2, job.right());
        });
    }
    for (std::uint64_t* memory : {arrived, cached, data}) npushmem_free(memory);
}

}  // namespace

void test_kernels(Checker& check, const Job& job, npu::Stream& stream) {
    Kernels kernels(check, stream);
    test_ring(kernels, job);
    test_gets_and_atomics(kernels, job);
    test_own_memory(kernels, job);
    test_polling(kernels, job);
    test_barriers(kernels, job);
    test_scalar_access(check, kernels, job);
    if (npu::device().config().hooks) test_hazards(check, job, stream);
}

}  // namespace npushmem::api_test
