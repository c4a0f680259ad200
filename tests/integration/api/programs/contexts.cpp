// SPDX-License-Identifier: BSD-3-Clause
// The forms with a context, and those with blocks: every type moves the same bytes as the plain forms do.
#include <array>
#include <complex>
#include <vector>

#include "npushmem.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

template <class T>
T value(int pe, int form, std::size_t i) {
    return static_cast<T>(pattern(pe, form, i));
}

// Nine forms, each into a row of its own at the right neighbour.
template <class T>
struct Forms {
    static constexpr std::size_t elements = 24;
    const char* name;
    npushmem_ctx_t ctx;
    void (*p)(npushmem_ctx_t, T*, T, int);
    T (*g)(npushmem_ctx_t, const T*, int);
    void (*put)(npushmem_ctx_t, T*, const T*, std::size_t, int);
    void (*get)(npushmem_ctx_t, T*, const T*, std::size_t, int);
    void (*put_nbi)(npushmem_ctx_t, T*, const T*, std::size_t, int);
    void (*get_nbi)(npushmem_ctx_t, T*, const T*, std::size_t, int);
    void (*iput)(npushmem_ctx_t, T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int);
    void (*iget)(npushmem_ctx_t, T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int);
    void (*ibput)(npushmem_ctx_t, T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, std::size_t, int);
    void (*ibget)(npushmem_ctx_t, T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, std::size_t, int);
    void (*put_signal)(npushmem_ctx_t, T*, const T*, std::size_t, std::uint64_t*, std::uint64_t, int, int);
    void (*put_signal_nbi)(npushmem_ctx_t, T*, const T*, std::size_t, std::uint64_t*, std::uint64_t, int, int);

    // The expected element i of row `row` after all puts; `guard` without a put.
    static T expected(int row, std::size_t i, int writer, T guard) {
        switch (row) {
            case 0: return i == 3 ? value<T>(writer, 0, 0) : guard;
            case 3: return i % 3 == 0 && i < 15 ? value<T>(writer, 3, i / 3 * 2) : guard;
            case 4: return i % 7 < 2 && i / 7 < 3 ? value<T>(writer, 4, i / 7 * 3 + i % 7) : guard;
            default: return i >= 2 && i < 7 ? value<T>(writer, row, i - 2) : guard;
        }
    }

    void run(Checker& check, const Job& job) const {
        const T guard = value<T>(0, 9, 5);
        T* rows = static_cast<T*>(npushmem_malloc(7 * elements * sizeof(T)));
        auto* signals = static_cast<std::uint64_t*>(npushmem_calloc(2, sizeof(std::uint64_t)));
        if (!check.that("memory", rows != nullptr && signals != nullptr)) return;
        for (std::size_t i = 0; i < 7 * elements; ++i) rows[i] = guard;
        npushmem_barrier_all();
        std::vector<std::vector<T>> sources;
        for (int row = 0; row < 7; ++row) {
            std::vector<T>& source = sources.emplace_back(elements);
            for (std::size_t i = 0; i < elements; ++i) source[i] = value<T>(job.me, row, i);
        }
        const auto row = [&](int n) { return rows + static_cast<std::size_t>(n) * elements; };
        const int to = job.right();
        p(ctx, row(0) + 3, sources[0][0], to);
        put(ctx, row(1) + 2, sources[1].data(), 5, to);
        put_nbi(ctx, row(2) + 2, sources[2].data(), 5, to);
        iput(ctx, row(3), sources[3].data(), 3, 2, 5, to);
        ibput(ctx, row(4), sources[4].data(), 7, 3, 2, 3, to);
        put_signal(ctx, row(5) + 2, sources[5].data(), 5, signals, 3, NPUSHMEM_SIGNAL_OP_SET, to);
        put_signal_nbi(ctx, row(6) + 2, sources[6].data(), 5, signals + 1, 4, NPUSHMEM_SIGNAL_OP_ADD, to);
        check.equal("the signal", std::uint64_t{3}, npushmem_signal_wait_until(signals, NPUSHMEM_CMP_NE, 0));
        check.equal("the signal of nbi", std::uint64_t{4}, npushmem_signal_wait_until(signals + 1, NPUSHMEM_CMP_NE, 0));
        compare(check, row(5), 5, job.left(), guard);
        compare(check, row(6), 6, job.left(), guard);
        npushmem_ctx_quiet(ctx);
        npushmem_barrier_all();
        for (int n = 0; n < 7; ++n) compare(check, row(n), n, job.left(), guard);
        read_back(check, job, rows, guard);
        npushmem_barrier_all();
        npushmem_free(signals);
        npushmem_free(rows);
    }

    void compare(Checker& check, const T* seen, int row, int writer, T guard) const {
        for (std::size_t i = 0; i < elements; ++i)
            if (seen[i] != expected(row, i, writer, guard))
                check.fail(fmt::format("{}: row {}, element {} differs", name, row, i));
    }

    void read_back(Checker& check, const Job& job, const T* rows, T guard) const {
        const int from = job.right();
        std::array<T, elements> here;
        if (g(ctx, rows + 3, from) != value<T>(job.me, 0, 0)) check.fail(fmt::format("{}: g differs", name));
        const auto blank = [&] { here.fill(guard); };
        blank();
        get(ctx, here.data() + 2, rows + elements + 2, 5, from);
        compare(check, here.data(), 1, job.me, guard);
        blank();
        get_nbi(ctx, here.data() + 2, rows + 2 * elements + 2, 5, from);
        npushmem_ctx_quiet(ctx);
        compare(check, here.data(), 2, job.me, guard);
        blank();
        iget(ctx, here.data(), rows + 3 * elements, 3, 3, 5, from);
        compare(check, here.data(), 3, job.me, guard);
        blank();
        ibget(ctx, here.data(), rows + 4 * elements, 7, 7, 2, 3, from);
        compare(check, here.data(), 4, job.me, guard);
    }
};

void test_rma(Checker& check, const Job& job, npushmem_ctx_t ctx) {
#define TEST_TYPE(NAME, TYPE)                         \
    Forms<TYPE>{#NAME,                                \
                ctx,                                  \
                npushmem_ctx_##NAME##_p,              \
                npushmem_ctx_##NAME##_g,              \
                npushmem_ctx_##NAME##_put,            \
                npushmem_ctx_##NAME##_get,            \
                npushmem_ctx_##NAME##_put_nbi,        \
                npushmem_ctx_##NAME##_get_nbi,        \
                npushmem_ctx_##NAME##_iput,           \
                npushmem_ctx_##NAME##_iget,           \
                npushmem_ctx_##NAME##_ibput,          \
                npushmem_ctx_##NAME##_ibget,          \
                npushmem_ctx_##NAME##_put_signal,     \
                npushmem_ctx_##NAME##_put_signal_nbi} \
        .run(check, job);
    NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_TYPE)
#undef TEST_TYPE
}

// Every PE updates its right neighbour's word, and no other PE does. Only a fence orders non-fetching operations.
template <class T>
struct Atomics {
    const char* name;
    T (*fetch)(npushmem_ctx_t, const T*, int);
    void (*set)(npushmem_ctx_t, T*, T, int);
    T (*swap)(npushmem_ctx_t, T*, T, int);
    T (*compare_swap)(npushmem_ctx_t, T*, T, T, int) = nullptr;
    T (*fetch_inc)(npushmem_ctx_t, T*, int) = nullptr;
    void (*inc)(npushmem_ctx_t, T*, int) = nullptr;
    T (*fetch_add)(npushmem_ctx_t, T*, T, int) = nullptr;
    void (*add)(npushmem_ctx_t, T*, T, int) = nullptr;
    void (*fetch_add_nbi)(npushmem_ctx_t, T*, T*, T, int) = nullptr;

    void run(Checker& check, const Job& job, npushmem_ctx_t ctx, T* words) const {
        const int to = job.right();
        const auto same = [&](const char* what, T expected, T seen) {
            if (expected != seen) check.equal(fmt::format("{} {}", name, what), expected, seen);
        };
        words[0] = words[1] = T{0};
        npushmem_barrier_all();
        set(ctx, words, T{5}, to);
        npushmem_ctx_fence(ctx);
        same("swap", T{5}, swap(ctx, words, T{7}, to));
        same("fetch", T{7}, fetch(ctx, words, to));
        if (compare_swap != nullptr) {
            same("failing compare_swap", T{7}, compare_swap(ctx, words, T{6}, T{9}, to));
            same("compare_swap", T{7}, compare_swap(ctx, words, T{7}, T{9}, to));
            same("fetch_inc", T{9}, fetch_inc(ctx, words, to));
            inc(ctx, words, to);
            npushmem_ctx_fence(ctx);
            same("fetch_add", T{11}, fetch_add(ctx, words, T{20}, to));
            add(ctx, words, T{3}, to);
            npushmem_ctx_fence(ctx);
            T old{};
            fetch_add_nbi(ctx, &old, words, T{1}, to);
            npushmem_ctx_quiet(ctx);
            same("fetch_add_nbi", T{34}, old);
            same("the last", T{35}, fetch(ctx, words, to));
        }
        npushmem_barrier_all();
        same("the word beside", T{0}, words[1]);
        npushmem_barrier_all();
    }
};

template <class T>
void test_bitwise(Checker& check, const Job& job, npushmem_ctx_t ctx, T* words,
                  std::array<T (*)(npushmem_ctx_t, T*, T, int), 3> fetching,
                  std::array<void (*)(npushmem_ctx_t, T*, T, int), 3> updating) {
    constexpr std::array<int, 3> after = {0b0100, 0b0110, 0b0011};  // and 1100, or 0010, xor 0101
    constexpr std::array<int, 3> operands = {0b1100, 0b0010, 0b0101};
    words[0] = words[1] = T{0b0110};
    npushmem_barrier_all();
    T expected{0b0110};
    for (std::size_t k = 0; k < 3; ++k) {
        const auto operand = static_cast<T>(operands[k]);
        check.equal("fetching bitwise", expected, fetching[k](ctx, words, operand, job.right()));
        updating[k](ctx, words + 1, operand, job.right());
        npushmem_ctx_fence(ctx);
        expected = static_cast<T>(after[k]);
    }
    npushmem_ctx_quiet(ctx);
    npushmem_barrier_all();
    check.equal("bitwise, fetching", expected, words[0]);
    check.equal("bitwise, updating", expected, words[1]);
    npushmem_barrier_all();
}

void test_atomics(Checker& check, const Job& job, npushmem_ctx_t ctx) {
    void* memory = npushmem_calloc(2, sizeof(std::uint64_t));
#define TEST_EXTENDED(NAME, TYPE)                                                              \
    Atomics<TYPE>{#NAME, npushmem_ctx_##NAME##_atomic_fetch, npushmem_ctx_##NAME##_atomic_set, \
                  npushmem_ctx_##NAME##_atomic_swap}                                           \
        .run(check, job, ctx, static_cast<TYPE*>(memory));
    TEST_EXTENDED(float, float)
    TEST_EXTENDED(double, double)
#undef TEST_EXTENDED
#define TEST_TYPE(NAME, TYPE)                                 \
    Atomics<TYPE>{#NAME,                                      \
                  npushmem_ctx_##NAME##_atomic_fetch,         \
                  npushmem_ctx_##NAME##_atomic_set,           \
                  npushmem_ctx_##NAME##_atomic_swap,          \
                  npushmem_ctx_##NAME##_atomic_compare_swap,  \
                  npushmem_ctx_##NAME##_atomic_fetch_inc,     \
                  npushmem_ctx_##NAME##_atomic_inc,           \
                  npushmem_ctx_##NAME##_atomic_fetch_add,     \
                  npushmem_ctx_##NAME##_atomic_add,           \
                  npushmem_ctx_##NAME##_atomic_fetch_add_nbi} \
        .run(check, job, ctx, static_cast<TYPE*>(memory));
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(TEST_TYPE)
#undef TEST_TYPE
#define TEST_TYPE(NAME, TYPE)                                                           \
    test_bitwise<TYPE>(                                                                 \
        check, job, ctx, static_cast<TYPE*>(memory),                                    \
        {npushmem_ctx_##NAME##_atomic_fetch_and, npushmem_ctx_##NAME##_atomic_fetch_or, \
         npushmem_ctx_##NAME##_atomic_fetch_xor},                                       \
        {npushmem_ctx_##NAME##_atomic_and, npushmem_ctx_##NAME##_atomic_or, npushmem_ctx_##NAME##_atomic_xor});
    NPUSHMEM_FOR_EACH_BITWISE_TYPE(TEST_TYPE)
#undef TEST_TYPE
    npushmem_free(memory);
}

// A quiet for some PEs; for no PE or no context it has no effect.
void test_ordering(Checker& check, const Job& job) {
    auto* word = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    const int right = job.right();
    npushmem_ctx_long_p(NPUSHMEM_CTX_DEFAULT, word, 7, right);
    npushmem_ctx_fence(NPUSHMEM_CTX_DEFAULT);
    npushmem_pe_quiet(&right, 1);
    npushmem_ctx_pe_quiet(NPUSHMEM_CTX_DEFAULT, &right, 1);
    npushmem_pe_quiet(nullptr, 3);
    npushmem_ctx_quiet(NPUSHMEM_CTX_INVALID);
    npushmem_ctx_fence(NPUSHMEM_CTX_INVALID);
    check.equal("after pe_quiet", 7L, npushmem_long_g(word, right));
    npushmem_barrier_all();
    npushmem_free(word);
    check.no_error("ordering of contexts");
}

void test_contexts(Checker& check, const Job& job) {
    test_rma(check, job, NPUSHMEM_CTX_DEFAULT);
    test_atomics(check, job, NPUSHMEM_CTX_DEFAULT);
    test_ordering(check, job);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("contexts", npushmem::api_test::test_contexts); }
