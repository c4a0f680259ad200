// SPDX-License-Identifier: BSD-3-Clause
// half and bfloat16 in put, get and collectives, bit by bit against references that combine in float and round once;
// and reduce-scatter of every type.
#include <algorithm>
#include <cstring>
#include <vector>

#include "npushmem.h"
#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

constexpr std::size_t most = 9000;  // elements; needs several blocks
constexpr std::size_t counts[] = {0, 1, 3, 57, 300, 1025, most};

// The number type of the kernel language that a type of the API stands for.
template <class T>
struct NumberOf {
    using Type = npu::half;
};
template <>
struct NumberOf<npushmemx_bfloat16_t> {
    using Type = npu::bfloat16;
};
template <class T>
T rounded(float value) {
    return {typename NumberOf<T>::Type(value).bits()};
}
template <class T>
float widened(T value) {
    return static_cast<float>(NumberOf<T>::Type::from_bits(value.bits));
}

// Sums of these need rounding: large and small numbers, some of them negative.
template <class T>
T number(int pe, std::size_t i) {
    const float size = i % 3 == 0 ? 1024.0F : i % 3 == 1 ? 0.37F : -1.5F;
    return rounded<T>(size * static_cast<float>((i * 3 + static_cast<std::size_t>(pe) * 5) % 7 + 1));
}

template <class T>
struct Functions {
    std::string name;
    using Collective = int (*)(npushmem_team_t, T*, const T*, std::size_t);
    struct Reduction {
        const char* name;
        Collective call;
        float (*combine)(float, float);
    };
    std::vector<Reduction> reductions;
    std::vector<Reduction> scattered;
    Collective inscan, exscan, collect, fcollect, alltoall;
    int (*alltoalls)(npushmem_team_t, T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t);
    int (*broadcast)(npushmem_team_t, T*, const T*, std::size_t, int);
};

float larger(float a, float b) { return a < b ? b : a; }
float smaller(float a, float b) { return b < a ? b : a; }
float sum(float a, float b) { return a + b; }
float product(float a, float b) { return a * b; }

template <class T>
class HalfTest {
public:
    HalfTest(Checker& check, const Job& job, Functions<T> functions)
        : check_(check), job_(job), functions_(std::move(functions)), n_(static_cast<std::size_t>(job.npes)) {
        dest_ = static_cast<T*>(npushmem_malloc((most + 8) * n_ * sizeof(T)));
        source_ = static_cast<T*>(npushmem_malloc((most + 8) * n_ * sizeof(T)));
    }
    ~HalfTest() {
        npushmem_free(source_);
        npushmem_free(dest_);
    }
    HalfTest(const HalfTest&) = delete;
    HalfTest& operator=(const HalfTest&) = delete;

    void run() {
        for (const std::size_t count : counts) {
            for (const auto& one : functions_.reductions)
                for (const bool in_place : {false, true}) reduce(one, count, in_place);
            for (const auto& one : functions_.scattered)
                for (const bool in_place : {false, true}) scatter(one, count, in_place);
            scan("inscan", functions_.inscan, true, count);
            scan("exscan", functions_.exscan, false, count);
        }
        move();
        check_.no_error(functions_.name);
    }

private:
    void fill(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) source_[i] = number<T>(job_.me, i);
        npushmem_sync_all();
    }
    void expect(const char* what, std::size_t i, T expected, T seen) {
        if (expected.bits != seen.bits)
            check_.fail(fmt::format("{} {}: element {} is {:#06x}, expected {:#06x}", functions_.name, what, i,
                                    seen.bits, expected.bits));
    }
    T combined(float (*combine)(float, float), std::size_t i, int members) {
        float all = widened(number<T>(0, i));
        for (int pe = 1; pe < members; ++pe) all = combine(all, widened(number<T>(pe, i)));
        return rounded<T>(all);
    }

    void reduce(const typename Functions<T>::Reduction& one, std::size_t count, bool in_place) {
        fill(count);
        T* const into = in_place ? source_ : dest_;
        check_.equal(one.name, 0, one.call(NPUSHMEM_TEAM_WORLD, into, source_, count));
        for (std::size_t i = 0; i < count; ++i) expect(one.name, i, combined(one.combine, i, job_.npes), into[i]);
        npushmem_sync_all();
    }

    void scatter(const typename Functions<T>::Reduction& one, std::size_t count, bool in_place) {
        fill(count * n_);
        T* const into = in_place ? source_ : dest_;
        check_.equal(one.name, 0, one.call(NPUSHMEM_TEAM_WORLD, into, source_, count));
        for (std::size_t i = 0; i < count; ++i)
            expect(one.name, i, combined(one.combine, static_cast<std::size_t>(job_.me) * count + i, job_.npes),
                   into[i]);
    }

    void scan(const char* name, typename Functions<T>::Collective call, bool inclusive, std::size_t count) {
        fill(count);
        check_.equal(name, 0, call(NPUSHMEM_TEAM_WORLD, dest_, source_, count));
        const int members = job_.me + (inclusive ? 1 : 0);
        for (std::size_t i = 0; i < count; ++i)
            expect(name, i, members == 0 ? T{0} : combined(sum, i, members), dest_[i]);
    }

    // What only copies: the bits stay.
    void move() {
        constexpr std::size_t count = 5;
        const auto me = static_cast<std::size_t>(job_.me);
        fill(3 * count * n_);
        check_.equal("broadcast", 0, functions_.broadcast(NPUSHMEM_TEAM_WORLD, dest_, source_, count, job_.npes - 1));
        expect("broadcast", 4, number<T>(job_.npes - 1, 4), dest_[4]);
        npushmem_sync_all();
        check_.equal("fcollect", 0, functions_.fcollect(NPUSHMEM_TEAM_WORLD, dest_, source_, count));
        for (std::size_t pe = 0; pe < n_; ++pe)
            expect("fcollect", pe, number<T>(static_cast<int>(pe), 4), dest_[pe * count + 4]);
        npushmem_sync_all();
        check_.equal("collect", 0, functions_.collect(NPUSHMEM_TEAM_WORLD, dest_, source_, me + 1));
        for (std::size_t pe = 0; pe < n_; ++pe)
            expect("collect", pe, number<T>(static_cast<int>(pe), pe), dest_[pe * (pe + 1) / 2 + pe]);
        npushmem_sync_all();
        check_.equal("alltoall", 0, functions_.alltoall(NPUSHMEM_TEAM_WORLD, dest_, source_, count));
        for (std::size_t pe = 0; pe < n_; ++pe)
            expect("alltoall", pe, number<T>(static_cast<int>(pe), me * count), dest_[pe * count]);
        npushmem_sync_all();
        check_.equal("alltoalls", 0, functions_.alltoalls(NPUSHMEM_TEAM_WORLD, dest_, source_, 2, 3, count));
        for (std::size_t pe = 0; pe < n_; ++pe)
            expect("alltoalls", pe, number<T>(static_cast<int>(pe), (me * count + 1) * 3), dest_[(pe * count + 1) * 2]);
        npushmem_sync_all();
    }

    Checker& check_;
    const Job& job_;
    Functions<T> functions_;
    std::size_t n_;
    T* dest_;
    T* source_;
};

#define TEST_HALF(NAME, TYPE)                                                                 \
    HalfTest<TYPE>(check, job,                                                                \
                   {#NAME,                                                                    \
                    {{"max", npushmemx_##NAME##_max_reduce, larger},                          \
                     {"min", npushmemx_##NAME##_min_reduce, smaller},                         \
                     {"sum", npushmemx_##NAME##_sum_reduce, sum},                             \
                     {"prod", npushmemx_##NAME##_prod_reduce, product}},                      \
                    {{"max_reducescatter", npushmemx_##NAME##_max_reducescatter, larger},     \
                     {"min_reducescatter", npushmemx_##NAME##_min_reducescatter, smaller},    \
                     {"sum_reducescatter", npushmemx_##NAME##_sum_reducescatter, sum},        \
                     {"prod_reducescatter", npushmemx_##NAME##_prod_reducescatter, product}}, \
                    npushmemx_##NAME##_sum_inscan,                                            \
                    npushmemx_##NAME##_sum_exscan,                                            \
                    npushmemx_##NAME##_collect,                                               \
                    npushmemx_##NAME##_fcollect,                                              \
                    npushmemx_##NAME##_alltoall,                                              \
                    npushmemx_##NAME##_alltoalls,                                             \
                    npushmemx_##NAME##_broadcast})                                            \
        .run();

// Element i of PE pe; small, so that sums and products fit every type.
template <class T>
T small(int pe, std::size_t i) {
    return static_cast<T>((i * 3 + static_cast<std::size_t>(pe) * 5) % 3 + 1);
}

template <class T, class Combine>
void test_scatter(Checker& check, const Job& job, const std::string& name,
                  int (*call)(npushmem_team_t, T*, const T*, std::size_t), Combine combine, std::size_t count) {
    const auto n = static_cast<std::size_t>(job.npes);
    T* const source = static_cast<T*>(npushmem_malloc((count * n + 1) * sizeof(T)));
    T* const dest = static_cast<T*>(npushmem_malloc((count + 1) * sizeof(T)));
    for (std::size_t i = 0; i < count * n; ++i) source[i] = small<T>(job.me, i);
    dest[count] = static_cast<T>(99);
    check.equal(name, 0, call(NPUSHMEM_TEAM_WORLD, dest, source, count));
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = static_cast<std::size_t>(job.me) * count + i;
        T expected = small<T>(0, at);
        for (int pe = 1; pe < job.npes; ++pe) expected = static_cast<T>(combine(expected, small<T>(pe, at)));
        if (!(dest[i] == expected)) check.fail(fmt::format("{} of {}: element {} differs", name, count, i));
    }
    check.that(name + " writes no more", dest[count] == static_cast<T>(99));
    npushmem_free(dest);
    npushmem_free(source);
}

void test_every_scatter(Checker& check, const Job& job) {
#define TEST_ONE(NAME, TYPE, OP, COMBINE, COUNT)                                                                    \
    test_scatter<TYPE>(                                                                                             \
        check, job, #NAME "_" #OP, npushmemx_##NAME##_##OP##_reducescatter, [](TYPE a, TYPE b) { return COMBINE; }, \
        COUNT);
#define TEST_BITS(NAME, TYPE)             \
    TEST_ONE(NAME, TYPE, and, (a & b), 3) \
    TEST_ONE(NAME, TYPE, or, (a | b), 3)  \
    TEST_ONE(NAME, TYPE, xor, (a ^ b), 3)
    NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE(TEST_BITS)
#define TEST_ORDERED(NAME, TYPE)                  \
    TEST_ONE(NAME, TYPE, max, (a < b ? b : a), 3) \
    TEST_ONE(NAME, TYPE, min, (b < a ? b : a), 3)
    NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_ORDERED)
#define TEST_ARITHMETIC(NAME, TYPE)       \
    TEST_ONE(NAME, TYPE, sum, (a + b), 3) \
    TEST_ONE(NAME, TYPE, prod, (a * b), 3)
    NPUSHMEM_FOR_EACH_ARITHMETIC_REDUCTION_TYPE(TEST_ARITHMETIC)
    for (const std::size_t count : counts) TEST_ONE(long, long, sum, (a + b), count)
#undef TEST_ONE
#undef TEST_BITS
#undef TEST_ORDERED
#undef TEST_ARITHMETIC
}

void test_wrong_calls(Checker& check, const Job& job) {
    auto* words = static_cast<long*>(npushmem_calloc(4 * static_cast<std::size_t>(job.npes), sizeof(long)));
    check.that("an invalid team", npushmemx_long_sum_reducescatter(NPUSHMEM_TEAM_INVALID, words, words, 1) != 0);
    check.failed_with("an invalid team", NPUSHMEM_E_ARGUMENT, {"npushmemx_long_sum_reducescatter"});
    long local[64] = {0};
    check.that("an array on the stack", npushmemx_long_sum_reducescatter(NPUSHMEM_TEAM_WORLD, words, local, 1) != 0);
    check.failed_with("an array on the stack", NPUSHMEM_E_NOT_SYMMETRIC,
                      {"npushmemx_long_sum_reducescatter", "source"});
    npushmem_barrier_all();
    npushmem_free(words);
}

void test_half(Checker& check, const Job& job) {
    TEST_HALF(half, npushmemx_half_t)
    TEST_HALF(bfloat16, npushmemx_bfloat16_t)
    test_every_scatter(check, job);
    check.no_error("reducescatter");
    test_wrong_calls(check, job);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("half", npushmem::api_test::test_half); }
