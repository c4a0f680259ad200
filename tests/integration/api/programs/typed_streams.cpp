// SPDX-License-Identifier: BSD-3-Clause
// Operations of every type and size in the order of a stream: put, get, waits and collectives.
#include <algorithm>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/api/programs/rma_forms.hpp"

namespace npushmem::api_test {
namespace {

constexpr std::size_t count = 9;
using Stream = npushmemx_stream_t;

// Null where a type lacks the form.
template <class T>
struct StreamForms {
    using Transfer = int (*)(T*, const T*, std::size_t, int, Stream);
    using Strided = int (*)(T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int, Stream);
    using Signalled = int (*)(T*, const T*, std::size_t, std::uint64_t*, std::uint64_t, int, int, Stream);
    std::string name;
    int (*p)(T*, T, int, Stream);
    T (*g)(const T*, int, Stream);
    Transfer put, put_nbi, get, get_nbi;
    Strided iput, iget;
    Signalled put_signal, put_signal_nbi;
};

template <class T>
class TransferTest {
public:
    TransferTest(Checker& check, const Job& job, StreamForms<T> forms, Stream stream)
        : check_(check), job_(job), forms_(std::move(forms)), stream_(stream) {
        rows_ = static_cast<T*>(npushmem_calloc(rows * row_elements, sizeof(T)));
        signals_ = static_cast<std::uint64_t*>(npushmem_calloc(2, sizeof(std::uint64_t)));
    }
    ~TransferTest() {
        npushmem_free(signals_);
        npushmem_free(rows_);
    }
    TransferTest(const TransferTest&) = delete;
    TransferTest& operator=(const TransferTest&) = delete;

    void run() {
        std::vector<T> source(2 * count);
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = value(job_.me, i);
        const int to = job_.right();
        if (forms_.p != nullptr) {
            T kept = source[3];
            queued(forms_.p(row(0), kept, to, stream_));
            kept = value(job_.me, 17);  // p has copied the value
        }
        queued(forms_.put(row(1), source.data(), count, to, stream_));
        queued(forms_.put_nbi(row(2), source.data(), count, to, stream_));
        queued(forms_.iput(row(3), source.data(), 3, 2, count, to, stream_));
        queued(forms_.put_signal(row(4), source.data(), count, signals_, 5, NPUSHMEM_SIGNAL_OP_SET, to, stream_));
        queued(
            forms_.put_signal_nbi(row(5), source.data(), count, signals_ + 1, 6, NPUSHMEM_SIGNAL_OP_ADD, to, stream_));
        queued(npushmemx_signal_wait_until_on_stream(signals_, NPUSHMEM_CMP_EQ, 5, stream_));
        queued(npushmemx_signal_wait_until_on_stream(signals_ + 1, NPUSHMEM_CMP_EQ, 6, stream_));
        queued(npushmemx_barrier_all_on_stream(stream_));
        std::vector<T> got(4 * count);
        queued(forms_.get(got.data(), row(1), count, to, stream_));
        queued(forms_.get_nbi(got.data() + count, row(2), count, to, stream_));
        queued(forms_.iget(got.data() + 2 * count, row(3), 1, 3, count, to, stream_));
        check_.equal(forms_.name + ": synchronize", 0, npushmemx_stream_synchronize(stream_));
        compare("put, back by get", source[4], got[4]);
        compare("put_nbi, back by get_nbi", source[5], got[count + 5]);
        compare("iput, back by iget", source[2 * 6], got[2 * count + 6]);
        if (forms_.p != nullptr) {
            compare("p", value(job_.left(), 3), row(0)[0]);
            compare("g", source[3], forms_.g(row(0), to, stream_));
        }
        compare("put_signal", value(job_.left(), count - 1), row(4)[count - 1]);
        compare("put_signal_nbi", value(job_.left(), count - 1), row(5)[count - 1]);
        npushmem_barrier_all();
    }

private:
    static constexpr std::size_t rows = 6;
    static constexpr std::size_t row_elements = 3 * count;
    T* row(std::size_t number) { return rows_ + number * row_elements; }
    static T value(int pe, std::size_t i) { return ElementOf<T>::make(pattern(pe, 1, i)); }
    void queued(int code) { check_.equal(forms_.name + ": queued", 0, code); }
    void compare(const char* what, const T& expected, const T& seen) {
        check_.that(forms_.name + " " + what, expected == seen);
    }

    Checker& check_;
    const Job& job_;
    StreamForms<T> forms_;
    Stream stream_;
    T* rows_;
    std::uint64_t* signals_;
};

void test_transfers(Checker& check, const Job& job, Stream stream) {
#define TEST_TYPE(NAME, TYPE)                                                                                          \
    TransferTest<TYPE>(                                                                                                \
        check, job,                                                                                                    \
        {#NAME, npushmemx_##NAME##_p_on_stream, npushmemx_##NAME##_g_on_stream, npushmemx_##NAME##_put_on_stream,      \
         npushmemx_##NAME##_put_nbi_on_stream, npushmemx_##NAME##_get_on_stream, npushmemx_##NAME##_get_nbi_on_stream, \
         npushmemx_##NAME##_iput_on_stream, npushmemx_##NAME##_iget_on_stream,                                         \
         npushmemx_##NAME##_put_signal_on_stream, npushmemx_##NAME##_put_signal_nbi_on_stream},                        \
        stream)                                                                                                        \
        .run();
    NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_TYPE)
    NPUSHMEM_FOR_EACH_HALF_TYPE(TEST_TYPE)
#undef TEST_TYPE
#define TRANSFER(NAME) \
    [](B* d, const B* s, std::size_t n, int pe, Stream t) { return npushmemx_##NAME##_on_stream(d, s, n, pe, t); }
#define STRIDED(NAME)                                                                               \
    [](B* d, const B* s, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t n, int pe, Stream t) { \
        return npushmemx_##NAME##_on_stream(d, s, dst, sst, n, pe, t);                              \
    }
#define SIGNALLED(NAME)                                                                                   \
    [](B* d, const B* s, std::size_t n, std::uint64_t* word, std::uint64_t v, int op, int pe, Stream t) { \
        return npushmemx_##NAME##_on_stream(d, s, n, word, v, op, pe, t);                                 \
    }
#define TEST_SIZE(BITS, BYTES)                                                                                     \
    {                                                                                                              \
        using B = Block<BYTES>;                                                                                    \
        TransferTest<B>(check, job,                                                                                \
                        {#BITS " bits", nullptr, nullptr, TRANSFER(put##BITS), TRANSFER(put##BITS##_nbi),          \
                         TRANSFER(get##BITS), TRANSFER(get##BITS##_nbi), STRIDED(iput##BITS), STRIDED(iget##BITS), \
                         SIGNALLED(put##BITS##_signal), SIGNALLED(put##BITS##_signal_nbi)},                        \
                        stream)                                                                                    \
            .run();                                                                                                \
    }
    NPUSHMEM_FOR_EACH_SIZE(TEST_SIZE)
#undef TEST_SIZE
#undef TRANSFER
#undef STRIDED
#undef SIGNALLED
}

// The puts of each PE are behind none of its own waits, on another stream: neither may keep the other from running.
template <class T>
void test_wait(Checker& check, const Job& job, const std::string& name, Stream waiting, Stream putting,
               int (*wait)(T*, int, T, Stream), int (*all)(T*, std::size_t, const int*, int, T, Stream),
               int (*vector)(T*, std::size_t, const int*, int, T*, Stream), int (*p)(T*, T, int, Stream)) {
    auto* objects = static_cast<T*>(npushmem_calloc(6, sizeof(T)));
    const int status[] = {0, 1, 0};
    T values[] = {3, 99, 5};
    T seen = 0;
    check.equal(name + "_wait_until", 0, wait(objects, NPUSHMEM_CMP_EQ, 1, waiting));
    check.equal(name + "_wait_until_all", 0, all(objects, 3, status, NPUSHMEM_CMP_GT, 0, waiting));
    check.equal(name + "_wait_until_all_vector", 0, vector(objects + 3, 3, status, NPUSHMEM_CMP_GE, values, waiting));
    check.equal("get", 0, npushmemx_getmem_on_stream(&seen, objects + 5, sizeof seen, job.me, waiting));
    const T puts[] = {1, 0, 2, 3, 0, 6};
    for (std::size_t i = 0; i < 6; ++i)
        if (puts[i] != 0) check.equal("p", 0, p(objects + i, puts[i], job.right(), putting));
    check.equal(name + ": synchronize the waits", 0, npushmemx_stream_synchronize(waiting));
    check.equal(name + ": synchronize the puts", 0, npushmemx_stream_synchronize(putting));
    check.that(name + ": what was behind the waits saw the value", seen == 6);
    npushmem_barrier_all();
    npushmem_free(objects);
}

void test_waits(Checker& check, const Job& job, Stream waiting, Stream putting) {
#define TEST_TYPE(NAME, TYPE)                                                                                        \
    test_wait<TYPE>(check, job, #NAME, waiting, putting, npushmemx_##NAME##_wait_until_on_stream,                    \
                    npushmemx_##NAME##_wait_until_all_on_stream, npushmemx_##NAME##_wait_until_all_vector_on_stream, \
                    npushmemx_##NAME##_p_on_stream);
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(TEST_TYPE)
    NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(TEST_TYPE)
#undef TEST_TYPE
}

// Collectives of one type; small numbers, so that all results fit it.
template <class T>
struct StreamCollectives {
    using Call = int (*)(npushmem_team_t, T*, const T*, std::size_t, Stream);
    std::string name;
    int (*broadcast)(npushmem_team_t, T*, const T*, std::size_t, int, Stream);
    Call collect, fcollect, alltoall, max, min, sum, prod, max_scattered, min_scattered, sum_scattered, prod_scattered;
};

template <class T>
struct SmallNumber {
    static T of(int value) { return static_cast<T>(value); }
};
template <>
struct SmallNumber<npushmemx_half_t> {
    static npushmemx_half_t of(int value) { return {static_cast<std::uint16_t>(value == 1 ? 0x3C00 : 0x4000)}; }
};
template <>
struct SmallNumber<npushmemx_bfloat16_t> {
    static npushmemx_bfloat16_t of(int value) { return {static_cast<std::uint16_t>(value == 1 ? 0x3F80 : 0x4000)}; }
};

// PE 0 has 2 and the others 1, so the largest and the product are 2, and the smallest is 1 if there are others. The sum
// is compared for types with arithmetic.
template <class T>
void test_type(Checker& check, const Job& job, const StreamCollectives<T>& with, Stream stream) {
    const auto n = static_cast<std::size_t>(job.npes);
    const npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    auto* source = static_cast<T*>(npushmem_calloc(2 * n, sizeof(T)));
    auto* dest = static_cast<T*>(npushmem_calloc(16 * n, sizeof(T)));
    for (std::size_t i = 0; i < 2 * n; ++i) source[i] = SmallNumber<T>::of(job.me == 0 ? 2 : 1);
    npushmem_barrier_all();
    const auto queued = [&](const char* what, int code) { check.equal(with.name + " " + what, 0, code); };
    const auto at = [&](std::size_t result) { return dest + result * n; };
    queued("broadcast", with.broadcast(team, at(0), source, 1, 0, stream));
    queued("collect", with.collect(team, at(1), source, 1, stream));
    queued("fcollect", with.fcollect(team, at(2), source, 1, stream));
    queued("alltoall", with.alltoall(team, at(3), source, 1, stream));
    queued("max", with.max(team, at(4), source, 1, stream));
    queued("min", with.min(team, at(5), source, 1, stream));
    queued("sum", with.sum(team, at(6), source, 1, stream));
    queued("prod", with.prod(team, at(7), source, 1, stream));
    queued("max_reducescatter", with.max_scattered(team, at(8), source, 1, stream));
    queued("min_reducescatter", with.min_scattered(team, at(9), source, 1, stream));
    queued("sum_reducescatter", with.sum_scattered(team, at(10), source, 1, stream));
    queued("prod_reducescatter", with.prod_scattered(team, at(11), source, 1, stream));
    queued("team_sync", npushmemx_team_sync_on_stream(team, stream));
    queued("sync_all", npushmemx_sync_all_on_stream(stream));
    queued("quiet", npushmemx_quiet_on_stream(stream));
    queued("flush", npushmemx_flush_on_stream(stream));
    queued("synchronize", npushmemx_stream_synchronize(stream));
    const T two = SmallNumber<T>::of(2);
    for (const std::size_t result : {0, 1, 2, 3, 4, 7, 8, 11})
        check.that(fmt::format("{}: result {}", with.name, result), at(result)[0] == two);
    for (const std::size_t result : {5, 9})
        check.that(fmt::format("{}: result {}", with.name, result), at(result)[0] == SmallNumber<T>::of(n > 1 ? 1 : 2));
    check.that(with.name + ": sums", at(6)[0] == at(10)[0] && (n > 1 || at(6)[0] == two));
    npushmem_barrier_all();
    npushmem_free(dest);
    npushmem_free(source);
}

void test_collectives(Checker& check, const Job& job, Stream stream) {
#define ON(NAME, OP) npushmemx_##NAME##_##OP##_on_stream
#define TEST_TYPE(NAME, TYPE)                                                                                         \
    test_type<TYPE>(                                                                                                  \
        check, job,                                                                                                   \
        {#NAME, ON(NAME, broadcast), ON(NAME, collect), ON(NAME, fcollect), ON(NAME, alltoall), ON(NAME, max_reduce), \
         ON(NAME, min_reduce), ON(NAME, sum_reduce), ON(NAME, prod_reduce), ON(NAME, max_reducescatter),              \
         ON(NAME, min_reducescatter), ON(NAME, sum_reducescatter), ON(NAME, prod_reducescatter)},                     \
        stream);
    NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_TYPE)
    NPUSHMEM_FOR_EACH_HALF_TYPE(TEST_TYPE)
#undef TEST_TYPE
    auto* words = static_cast<std::uint64_t*>(npushmem_calloc(8 + static_cast<std::size_t>(job.npes), 8));
    for (int pe = 0; pe < job.npes; ++pe) words[8 + pe] = std::uint64_t{3} << job.me;
    npushmem_barrier_all();
    check.equal("and", 0, ON(uint64, and_reduce)(NPUSHMEM_TEAM_WORLD, words, words + 8, 1, stream));
    check.equal("or", 0, ON(uint64, or_reduce)(NPUSHMEM_TEAM_WORLD, words + 1, words + 8, 1, stream));
    check.equal("xor", 0, ON(uint64, xor_reduce)(NPUSHMEM_TEAM_WORLD, words + 2, words + 8, 1, stream));
    check.equal("and", 0, ON(uint64, and_reducescatter)(NPUSHMEM_TEAM_WORLD, words + 3, words + 8, 1, stream));
    check.equal("or", 0, ON(uint64, or_reducescatter)(NPUSHMEM_TEAM_WORLD, words + 4, words + 8, 1, stream));
    check.equal("xor", 0, ON(uint64, xor_reducescatter)(NPUSHMEM_TEAM_WORLD, words + 5, words + 8, 1, stream));
    check.equal("synchronize", 0, npushmemx_stream_synchronize(stream));
    std::uint64_t all[3] = {3, 3, 3};
    for (int pe = 1; pe < job.npes; ++pe) {
        const std::uint64_t theirs = std::uint64_t{3} << pe;
        all[0] &= theirs;
        all[1] |= theirs;
        all[2] ^= theirs;
    }
    for (int i = 0; i < 6; ++i) check.equal("and, or, xor", all[i % 3], words[i]);
#undef ON
    npushmem_barrier_all();
    npushmem_free(words);
}

void test_failures(Checker& check, const Job& job, Stream stream) {
    auto* word = static_cast<int*>(npushmem_calloc(1, sizeof(int)));
    int local = 0;
    check.equal("no comparison", int{NPUSHMEM_E_ARGUMENT}, npushmemx_int_wait_until_on_stream(word, 99, 0, stream));
    check.failed_with("no comparison", NPUSHMEM_E_ARGUMENT, {"npushmemx_int_wait_until_on_stream", "comparison 99"});
    check.that("not symmetric", npushmemx_int_wait_until_on_stream(&local, NPUSHMEM_CMP_EQ, 0, stream) != 0);
    check.that("no values",
               npushmemx_int_wait_until_all_vector_on_stream(word, 1, nullptr, NPUSHMEM_CMP_EQ, nullptr, stream) != 0);
    npushmemx_clear_error();
    check.equal("put to nobody", 0, npushmemx_int_put_on_stream(word, &local, 1, job.npes, stream));
    check.equal("its failure", int{NPUSHMEM_E_RANGE}, npushmemx_stream_synchronize(stream));
    check.equal("no operation", 0,
                npushmemx_signal_op_on_stream(reinterpret_cast<std::uint64_t*>(word), 1, 7, 0, stream));
    check.that("its failure", npushmemx_stream_synchronize(stream) != 0);
    npushmemx_clear_error();
    check.equal("g from nobody", 0, npushmemx_int_g_on_stream(word, job.npes, stream));
    check.failed_with("g from nobody", NPUSHMEM_E_RANGE, {"npushmemx_int_g_on_stream"});
    check.equal("the failure stays in the stream", int{NPUSHMEM_E_RANGE}, npushmemx_stream_synchronize(stream));
    npushmemx_clear_error();
    npushmem_barrier_all();
    npushmem_free(word);
}

void test_typed_streams(Checker& check, const Job& job) {
    Stream own = nullptr;
    Stream other = nullptr;
    check.equal("create", 0, npushmemx_stream_create(&own));
    check.equal("create", 0, npushmemx_stream_create(&other));
    test_transfers(check, job, own);
    test_waits(check, job, own, other);
    test_collectives(check, job, own);
    check.no_error("typed operations on a stream");
    test_failures(check, job, own);
    check.equal("destroy", 0, npushmemx_stream_destroy(other));
    check.equal("destroy", 0, npushmemx_stream_destroy(own));
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("typed_streams", npushmem::api_test::test_typed_streams); }
