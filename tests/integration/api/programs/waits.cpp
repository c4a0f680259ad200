// SPDX-License-Identifier: BSD-3-Clause
// wait_until, test and signals: every type and comparison, and that a PE which does nothing but wait or test drives its
// own outstanding operations forward.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "npushmem.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

template <class T>
struct WaitForms {
    std::string name;
    void (*set)(T*, T, int);
    void (*wait_until)(T*, int, T);
    int (*test)(T*, int, T);
};

struct Case {
    int comparison;
    const char* name;
    int value;
    int before;  // does not satisfy
    int after;   // does
};
constexpr Case cases[] = {
    {NPUSHMEM_CMP_EQ, "EQ", 5, 4, 5}, {NPUSHMEM_CMP_NE, "NE", 5, 5, 6}, {NPUSHMEM_CMP_GT, "GT", 5, 5, 6},
    {NPUSHMEM_CMP_LE, "LE", 5, 6, 5}, {NPUSHMEM_CMP_LT, "LT", 5, 5, 4}, {NPUSHMEM_CMP_GE, "GE", 5, 4, 5},
};

template <class T>
void test_comparisons(Checker& check, const WaitForms<T>& forms, T* word, int me) {
    const auto holds = [&](const char* name, int comparison, T value, bool expected) {
        check.equal(fmt::format("{} test {} {} of {}", forms.name, name, value, *word), expected ? 1 : 0,
                    forms.test(word, comparison, value));
    };
    for (const Case& c : cases) {
        forms.set(word, static_cast<T>(c.before), me);
        npushmem_quiet();
        holds(c.name, c.comparison, static_cast<T>(c.value), false);
        forms.set(word, static_cast<T>(c.after), me);
        npushmem_quiet();
        holds(c.name, c.comparison, static_cast<T>(c.value), true);
        forms.wait_until(word, c.comparison, static_cast<T>(c.value));
    }
    // The sign of the type decides.
    const auto minus = static_cast<T>(-1);
    forms.set(word, minus, me);
    npushmem_quiet();
    holds("LT", NPUSHMEM_CMP_LT, T{0}, std::is_signed_v<T>);
    holds("GE", NPUSHMEM_CMP_GE, T{0}, !std::is_signed_v<T>);
    // All bits count, not the low ones.
    forms.set(word, std::numeric_limits<T>::lowest(), me);
    npushmem_quiet();
    holds("EQ", NPUSHMEM_CMP_EQ, T{0}, std::numeric_limits<T>::lowest() == 0);
}

// A token goes around: every PE waits for its left neighbour, first by wait_until, then by a loop of test.
template <class T>
void test_around(Checker& check, const Job& job, const WaitForms<T>& forms, T* word) {
    forms.set(word, T{0}, job.me);
    npushmem_barrier_all();
    for (int round = 1; round <= 4; ++round) {
        const auto value = static_cast<T>(round);
        if (job.me == 0) forms.set(word, value, job.right());
        if (round % 2 == 1)
            forms.wait_until(word, NPUSHMEM_CMP_GE, value);
        else
            while (forms.test(word, NPUSHMEM_CMP_GE, value) == 0) {
            }
        // No PE sends the next token before this PE has passed this one.
        check.equal(forms.name + ": the token", value, *word);
        if (job.me != 0) forms.set(word, value, job.right());
    }
    npushmem_barrier_all();
}

void test_types(Checker& check, const Job& job) {
    void* memory = npushmem_malloc(sizeof(std::uint64_t));
#define TEST_TYPE(NAME, TYPE)                                                                          \
    {                                                                                                  \
        const WaitForms<TYPE> forms{#NAME, npushmem_##NAME##_atomic_set, npushmem_##NAME##_wait_until, \
                                    npushmem_##NAME##_test};                                           \
        test_comparisons(check, forms, static_cast<TYPE*>(memory), job.me);                            \
        test_around(check, job, forms, static_cast<TYPE*>(memory));                                    \
        check.no_error(#NAME);                                                                         \
    }
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(TEST_TYPE)
#undef TEST_TYPE
#define TEST_TYPE(NAME, TYPE)                                                                                          \
    {                                                                                                                  \
        const WaitForms<TYPE> forms{#NAME, npushmem_##NAME##_p, npushmem_##NAME##_wait_until, npushmem_##NAME##_test}; \
        test_comparisons(check, forms, static_cast<TYPE*>(memory), job.me);                                            \
        test_around(check, job, forms, static_cast<TYPE*>(memory));                                                    \
        check.no_error(#NAME);                                                                                         \
    }
    NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(TEST_TYPE)
#undef TEST_TYPE
    npushmem_free(memory);
}

// No quiet here: operations progress only because the PE waits or tests for something else.
void test_progress(Checker& check, const Job& job, bool by_test) {
    constexpr std::uint64_t rounds = 20;
    auto* data = static_cast<long*>(npushmem_calloc(rounds, sizeof(long)));
    auto* signal = static_cast<std::uint64_t*>(npushmem_calloc(1, sizeof(std::uint64_t)));
    long values[rounds];
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        values[round - 1] = static_cast<long>(round) * 100 + job.me;
        npushmem_long_put_signal_nbi(data + round - 1, values + round - 1, 1, signal, round, NPUSHMEM_SIGNAL_OP_SET,
                                     job.right());
        // A signal that is set does not go back, because each round waits for the one before.
        if (by_test)
            while (npushmem_uint64_test(signal, NPUSHMEM_CMP_GE, round) == 0) {
            }
        else
            npushmem_signal_wait_until(signal, NPUSHMEM_CMP_GE, round);
        check.equal("data before its signal", static_cast<long>(round) * 100 + job.left(), data[round - 1]);
        npushmem_quiet();
    }
    npushmem_barrier_all();
    npushmem_free(signal);
    npushmem_free(data);
}

void test_signals(Checker& check, const Job& job) {
    auto* signal = static_cast<std::uint64_t*>(npushmem_calloc(2, sizeof(std::uint64_t)));
    npushmem_signal_set(signal, 7, job.right());
    check.equal("signal_wait_until", std::uint64_t{7}, npushmem_signal_wait_until(signal, NPUSHMEM_CMP_EQ, 7));
    npushmem_barrier_all();
    npushmem_signal_add(signal, 5, job.right());
    check.equal("signal_add", std::uint64_t{12}, npushmem_signal_wait_until(signal, NPUSHMEM_CMP_NE, 7));
    check.equal("signal_fetch", std::uint64_t{12}, npushmem_signal_fetch(signal));
    npushmem_barrier_all();
    // Data of no elements: the signal alone, with and without addresses.
    npushmem_int_put_signal(nullptr, nullptr, 0, signal + 1, 3, NPUSHMEM_SIGNAL_OP_ADD, job.right());
    check.equal("put_signal of nothing", std::uint64_t{3}, npushmem_signal_wait_until(signal + 1, NPUSHMEM_CMP_GT, 0));
    npushmem_barrier_all();
    npushmem_free(signal);
    check.no_error("signals");
}

template <class T>
struct ManyForms {
    const char* name;
    void (*set)(T*, T, int);
    void (*wait_all)(T*, std::size_t, const int*, int, T);
    std::size_t (*wait_any)(T*, std::size_t, const int*, int, T);
    std::size_t (*wait_some)(T*, std::size_t, std::size_t*, const int*, int, T);
    void (*wait_all_vector)(T*, std::size_t, const int*, int, T*);
    std::size_t (*wait_any_vector)(T*, std::size_t, const int*, int, T*);
    std::size_t (*wait_some_vector)(T*, std::size_t, std::size_t*, const int*, int, T*);
    int (*test_all)(T*, std::size_t, const int*, int, T);
    std::size_t (*test_any)(T*, std::size_t, const int*, int, T);
    std::size_t (*test_some)(T*, std::size_t, std::size_t*, const int*, int, T);
    int (*test_all_vector)(T*, std::size_t, const int*, int, T*);
    std::size_t (*test_any_vector)(T*, std::size_t, const int*, int, T*);
    std::size_t (*test_some_vector)(T*, std::size_t, std::size_t*, const int*, int, T*);
};

constexpr std::size_t many = 5;
constexpr std::size_t none = SIZE_MAX;

// The left neighbour sets the words one after another, the last one first; the vector forms wait for values that
// differ.
template <class T>
void test_many(Checker& check, const Job& job, const ManyForms<T>& f, T* words) {
    const auto what = [&](const char* form) { return fmt::format("{} {}", f.name, form); };
    const int status[many] = {0, 1, 0, 0, 0};
    const int all_out[many] = {1, 1, 1, 1, 1};
    T values[many];
    for (std::size_t i = 0; i < many; ++i) values[i] = static_cast<T>(i + 1);
    std::size_t indices[many] = {9, 9, 9, 9, 9};
    for (std::size_t i = 0; i < many; ++i) words[i] = T{0};
    npushmem_barrier_all();

    check.equal(what("test_all"), 0, f.test_all(words, many, nullptr, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("test_any"), none, f.test_any(words, many, nullptr, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("test_some"), std::size_t{0}, f.test_some(words, many, indices, nullptr, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("test_any_vector"), none, f.test_any_vector(words, many, nullptr, NPUSHMEM_CMP_EQ, values));
    // An empty set: wait_until_all returns, and there is no index.
    check.equal(what("test_all of nothing"), 1, f.test_all(words, many, all_out, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("wait_until_any of nothing"), none, f.wait_any(words, many, all_out, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("wait_until_any of no objects"), none, f.wait_any(words, 0, nullptr, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("wait_until_some of nothing"), std::size_t{0},
                f.wait_some(words, many, indices, all_out, NPUSHMEM_CMP_NE, T{0}));
    f.wait_all(words, many, all_out, NPUSHMEM_CMP_NE, T{0});
    npushmem_barrier_all();

    f.set(words + 4, values[4], job.right());
    check.equal(what("wait_until_any"), std::size_t{4}, f.wait_any(words, many, status, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("wait_until_any_vector"), std::size_t{4},
                f.wait_any_vector(words, many, status, NPUSHMEM_CMP_EQ, values));
    check.equal(what("wait_until_some"), std::size_t{1},
                f.wait_some(words, many, indices, nullptr, NPUSHMEM_CMP_GT, T{2}));
    check.equal(what("its index"), std::size_t{4}, indices[0]);
    npushmem_barrier_all();

    for (std::size_t i = 0; i < many; ++i)
        if (status[i] == 0) f.set(words + i, values[i], job.right());
    f.wait_all(words, many, status, NPUSHMEM_CMP_GE, T{1});
    f.wait_all_vector(words, many, status, NPUSHMEM_CMP_EQ, values);
    check.equal(what("test_all"), 1, f.test_all(words, many, status, NPUSHMEM_CMP_NE, T{0}));
    check.equal(what("test_all_vector"), 1, f.test_all_vector(words, many, status, NPUSHMEM_CMP_LE, values));
    check.equal(what("test_all_vector with the one left out"), 0,
                f.test_all_vector(words, many, nullptr, NPUSHMEM_CMP_EQ, values));
    check.equal(what("wait_until_some_vector"), std::size_t{4},
                f.wait_some_vector(words, many, indices, nullptr, NPUSHMEM_CMP_EQ, values));
    check.equal(what("test_some"), std::size_t{3}, f.test_some(words, many, indices, nullptr, NPUSHMEM_CMP_GE, T{3}));
    check.equal(what("test_some_vector"), std::size_t{1},
                f.test_some_vector(words, many, indices, nullptr, NPUSHMEM_CMP_NE, values));
    check.equal(what("its index"), std::size_t{1}, indices[0]);
    // Repeated calls of any return every object that holds.
    bool found[many] = {};
    for (std::size_t call = 0; call < many - 1; ++call) {
        const std::size_t at = f.test_any(words, many, nullptr, NPUSHMEM_CMP_NE, T{0});
        if (check.that(what("test_any finds one"), at < many)) found[at] = true;
    }
    check.that(what("test_any comes to all"), found[0] && !found[1] && found[2] && found[3] && found[4]);
    npushmem_barrier_all();
}

void test_many_objects(Checker& check, const Job& job) {
    void* memory = npushmem_calloc(many, sizeof(std::uint64_t));
#define TEST_TYPE(NAME, TYPE)                                                                                       \
    test_many<TYPE>(                                                                                                \
        check, job,                                                                                                 \
        {#NAME, npushmem_##NAME##_atomic_set, npushmem_##NAME##_wait_until_all, npushmem_##NAME##_wait_until_any,   \
         npushmem_##NAME##_wait_until_some, npushmem_##NAME##_wait_until_all_vector,                                \
         npushmem_##NAME##_wait_until_any_vector, npushmem_##NAME##_wait_until_some_vector,                         \
         npushmem_##NAME##_test_all, npushmem_##NAME##_test_any, npushmem_##NAME##_test_some,                       \
         npushmem_##NAME##_test_all_vector, npushmem_##NAME##_test_any_vector, npushmem_##NAME##_test_some_vector}, \
        static_cast<TYPE*>(memory));
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(TEST_TYPE)
#undef TEST_TYPE
    npushmem_free(memory);
    check.no_error("waits over many objects");
}

void test_waits(Checker& check, const Job& job) {
    test_many_objects(check, job);
    test_types(check, job);
    test_signals(check, job);
    test_progress(check, job, false);
    test_progress(check, job, true);
    check.no_error("progress");
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("waits", npushmem::api_test::test_waits); }
