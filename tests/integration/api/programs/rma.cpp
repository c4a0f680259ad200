// SPDX-License-Identifier: BSD-3-Clause
// Put and get: every type and size, every form, counts 0 to many, strides, the own PE, large and unaligned transfers.
#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/integration/api/programs/checker.hpp"
#include "tests/integration/api/programs/rma_forms.hpp"

namespace npushmem::api_test {
namespace {

constexpr std::size_t row_elements = 40;
constexpr unsigned guard = 121;  // the value around each object, which must stay
constexpr unsigned scribble = 122;

enum Form : int { with_p, with_put, with_put_nbi, with_iput, with_signal, with_signal_nbi, form_count };

constexpr std::size_t counts[] = {0, 1, 3, 16, 33};

// The rows of one type's symmetric array: one for each form and count, so that everything is under way together.
template <class T>
class RmaTest {
public:
    RmaTest(Checker& check, const Job& job, RmaForms<T> forms, int peer)
        : check_(check),
          job_(job),
          forms_(std::move(forms)),
          peer_(peer),
          writer_(peer == job.me ? job.me : job.left()) {}

    void run() {
        rows_ = static_cast<T*>(npushmem_malloc(form_count * std::size(counts) * row_elements * sizeof(T)));
        signals_ = static_cast<std::uint64_t*>(npushmem_calloc(2 * std::size(counts), sizeof(std::uint64_t)));
        if (!check_.that("memory for " + forms_.name, rows_ != nullptr && signals_ != nullptr)) return;
        std::fill_n(rows_, form_count * std::size(counts) * row_elements, make(guard));
        npushmem_barrier_all();
        put_everything();
        look_at_signalled();
        npushmem_barrier_all();
        look_at_everything();
        get_everything();
        npushmem_barrier_all();
        npushmem_free(signals_);
        npushmem_free(rows_);
        check_.no_error(forms_.name);
    }

private:
    static T make(unsigned value) { return ElementOf<T>::make(value); }
    T* row(int form, std::size_t number) {
        return rows_ + (static_cast<std::size_t>(form) * std::size(counts) + number) * row_elements;
    }
    T value(int pe, int form, std::size_t index) const { return make(pattern(pe, form, index)); }
    std::vector<T> values(int form, std::size_t count) const {
        std::vector<T> out;
        for (std::size_t i = 0; i < count; ++i) out.push_back(value(job_.me, form, i));
        return out;
    }

    // After a blocking call the source changes; the change must not arrive.
    template <class Call>
    void blocking(int form, std::size_t count, Call&& call) {
        std::vector<T> source = values(form, count);
        call(source.data());
        std::fill(source.begin(), source.end(), make(scribble));
    }

    void put_everything() {
        std::vector<std::vector<T>> kept;  // sources of the nbi forms, until quiet
        for (std::size_t n = 0; n < std::size(counts); ++n) {
            const std::size_t count = counts[n];
            if (forms_.p != nullptr)
                for (std::size_t i = 0; i < count; ++i)
                    forms_.p(row(with_p, n) + 1 + i, value(job_.me, with_p, i), peer_);
            blocking(with_put, count, [&](T* from) { forms_.put(row(with_put, n) + 1, from, count, peer_); });
            kept.push_back(values(with_put_nbi, count));
            forms_.put_nbi(row(with_put_nbi, n) + 1, kept.back().data(), count, peer_);
            put_strided(n);
            blocking(with_signal, count, [&](T* from) {
                forms_.put_signal(row(with_signal, n) + 1, from, count, signals_ + n, 7 + n, NPUSHMEM_SIGNAL_OP_SET,
                                  peer_);
            });
            kept.push_back(values(with_signal_nbi, count));
            forms_.put_signal_nbi(row(with_signal_nbi, n) + 1, kept.back().data(), count,
                                  signals_ + std::size(counts) + n, 9 + n, NPUSHMEM_SIGNAL_OP_ADD, peer_);
        }
        npushmem_quiet();
    }

    // Element i from source[2 i] to dest[3 i], as far as they fit.
    static std::size_t strided(std::size_t count) { return std::min<std::size_t>(count, 12); }
    void put_strided(std::size_t n) {
        if (forms_.iput == nullptr) return;
        const std::size_t count = strided(counts[n]);
        blocking(with_iput, 2 * count + 1,
                 [&](T* from) { forms_.iput(row(with_iput, n) + 1, from, 3, 2, count, peer_); });
    }

    // Before the barrier: the signal alone says that the data are there.
    void look_at_signalled() {
        for (std::size_t n = 0; n < std::size(counts); ++n) {
            const std::uint64_t set = npushmem_signal_wait_until(signals_ + n, NPUSHMEM_CMP_NE, 0);
            check_.equal(forms_.name + " put_signal: the signal", std::uint64_t{7 + n}, set);
            look(with_signal, n, "put_signal");
            const std::uint64_t added =
                npushmem_signal_wait_until(signals_ + std::size(counts) + n, NPUSHMEM_CMP_NE, 0);
            check_.equal(forms_.name + " put_signal_nbi: the signal", std::uint64_t{9 + n}, added);
            look(with_signal_nbi, n, "put_signal_nbi");
        }
    }

    void look_at_everything() {
        for (std::size_t n = 0; n < std::size(counts); ++n) {
            if (forms_.p != nullptr) look(with_p, n, "p");
            look(with_put, n, "put");
            look(with_put_nbi, n, "put_nbi");
            look(with_signal, n, "put_signal");
            look(with_signal_nbi, n, "put_signal_nbi");
            if (forms_.iput != nullptr) look_strided(n);
        }
    }

    void look(int form, std::size_t n, const char* name) {
        const T* seen = row(form, n);
        for (std::size_t i = 0; i < row_elements; ++i) {
            const bool written = i >= 1 && i < counts[n] + 1;
            compare(name, counts[n], i, written ? value(writer_, form, i - 1) : make(guard), seen[i]);
        }
    }

    void look_strided(std::size_t n) {
        const T* seen = row(with_iput, n);
        for (std::size_t i = 0; i < row_elements; ++i) {
            const std::size_t element = (i - 1) / 3;
            const bool written = i >= 1 && (i - 1) % 3 == 0 && element < strided(counts[n]);
            compare("iput", counts[n], i, written ? value(writer_, with_iput, element * 2) : make(guard), seen[i]);
        }
    }

    void compare(const char* form, std::size_t count, std::size_t index, const T& expected, const T& seen) {
        if (!(expected == seen))
            check_.equal(fmt::format("{} {} of {} elements, array element {}", forms_.name, form, count, index),
                         expected, seen);
    }

    // What `peer_` holds was put there by the PE whose peer it is.
    void get_everything() {
        const int writer = job_.me;
        for (std::size_t n = 0; n < std::size(counts); ++n) {
            const std::size_t count = counts[n];
            std::vector<T> got(count + 2, make(guard));
            std::vector<T> later = got;
            std::vector<T> spread(2 * row_elements, make(guard));
            forms_.get(got.data() + 1, row(with_put, n) + 1, count, peer_);
            check_got("get", writer, count, got);
            forms_.get_nbi(later.data() + 1, row(with_put, n) + 1, count, peer_);
            npushmem_quiet();
            check_got("get_nbi", writer, count, later);
            if (forms_.iget != nullptr) get_strided(writer, n, spread);
            if (forms_.g != nullptr)
                for (std::size_t i = 0; i < count; ++i)
                    compare("g", count, i, value(writer, with_p, i), forms_.g(row(with_p, n) + 1 + i, peer_));
        }
    }

    void check_got(const char* form, int writer, std::size_t count, const std::vector<T>& got) {
        for (std::size_t i = 0; i < got.size(); ++i) {
            const bool written = i >= 1 && i < count + 1;
            compare(form, count, i, written ? value(writer, with_put, i - 1) : make(guard), got[i]);
        }
    }

    void get_strided(int writer, std::size_t n, std::vector<T>& spread) {
        const std::size_t count = strided(counts[n]);
        forms_.iget(spread.data() + 1, row(with_iput, n) + 1, 2, 3, count, peer_);
        for (std::size_t i = 0; i < spread.size(); ++i) {
            const std::size_t element = (i - 1) / 2;
            const bool written = i >= 1 && (i - 1) % 2 == 0 && element < count;
            compare("iget", count, i, written ? value(writer, with_iput, element * 2) : make(guard), spread[i]);
        }
    }

    Checker& check_;
    Job job_;
    RmaForms<T> forms_;
    int peer_;
    int writer_;  // whose values are expected here
    T* rows_ = nullptr;
    std::uint64_t* signals_ = nullptr;
};

template <class T>
void test_forms(Checker& check, const Job& job, const RmaForms<T>& forms) {
    RmaTest<T>(check, job, forms, job.right()).run();
    if (job.npes > 1) RmaTest<T>(check, job, forms, job.me).run();
}

void test_types(Checker& check, const Job& job) {
#define TEST_TYPE(NAME, TYPE)                                                                  \
    test_forms<TYPE>(                                                                          \
        check, job,                                                                            \
        {#NAME, NPUSHMEM_CALLS(npushmem_##NAME##_p), NPUSHMEM_CALLS(npushmem_##NAME##_g),      \
         NPUSHMEM_CALLS(npushmem_##NAME##_put), NPUSHMEM_CALLS(npushmem_##NAME##_get),         \
         NPUSHMEM_CALLS(npushmem_##NAME##_put_nbi), NPUSHMEM_CALLS(npushmem_##NAME##_get_nbi), \
         NPUSHMEM_CALLS(npushmem_##NAME##_iput), NPUSHMEM_CALLS(npushmem_##NAME##_iget),       \
         NPUSHMEM_CALLS(npushmem_##NAME##_put_signal), NPUSHMEM_CALLS(npushmem_##NAME##_put_signal_nbi)});
    NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_TYPE)
#undef TEST_TYPE
#define TEST_TYPE(NAME, TYPE)                                                                                      \
    test_forms<TYPE>(                                                                                              \
        check, job,                                                                                                \
        {#NAME, npushmemx_##NAME##_p, npushmemx_##NAME##_g, npushmemx_##NAME##_put, npushmemx_##NAME##_get,        \
         npushmemx_##NAME##_put_nbi, npushmemx_##NAME##_get_nbi, npushmemx_##NAME##_iput, npushmemx_##NAME##_iget, \
         npushmemx_##NAME##_put_signal, npushmemx_##NAME##_put_signal_nbi});
    NPUSHMEM_FOR_EACH_HALF_TYPE(TEST_TYPE)
#undef TEST_TYPE
}

// The untyped functions take void pointers; these wrappers give them a type.
void test_sizes(Checker& check, const Job& job) {
#define TEST_SIZE(BITS, BYTES)                                                                                         \
    {                                                                                                                  \
        using B = Block<BYTES>;                                                                                        \
        RmaForms<B> forms{.name = #BITS " bits"};                                                                      \
        forms.put = [](B* d, const B* s, std::size_t n, int pe) { npushmem_put##BITS(d, s, n, pe); };                  \
        forms.get = [](B* d, const B* s, std::size_t n, int pe) { npushmem_get##BITS(d, s, n, pe); };                  \
        forms.put_nbi = [](B* d, const B* s, std::size_t n, int pe) { npushmem_put##BITS##_nbi(d, s, n, pe); };        \
        forms.get_nbi = [](B* d, const B* s, std::size_t n, int pe) { npushmem_get##BITS##_nbi(d, s, n, pe); };        \
        forms.iput = [](B* d, const B* s, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t n, int pe) {             \
            npushmem_iput##BITS(d, s, dst, sst, n, pe);                                                                \
        };                                                                                                             \
        forms.iget = [](B* d, const B* s, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t n, int pe) {             \
            npushmem_iget##BITS(d, s, dst, sst, n, pe);                                                                \
        };                                                                                                             \
        forms.put_signal = [](B* d, const B* s, std::size_t n, std::uint64_t* word, std::uint64_t v, int op, int pe) { \
            npushmem_put##BITS##_signal(d, s, n, word, v, op, pe);                                                     \
        };                                                                                                             \
        forms.put_signal_nbi = [](B* d, const B* s, std::size_t n, std::uint64_t* word, std::uint64_t v, int op,       \
                                  int pe) { npushmem_put##BITS##_signal_nbi(d, s, n, word, v, op, pe); };              \
        test_forms<B>(check, job, forms);                                                                              \
    }
    NPUSHMEM_FOR_EACH_SIZE(TEST_SIZE)
#undef TEST_SIZE
}

void test_bytes(Checker& check, const Job& job) {
    using B = Block<1>;
    RmaForms<B> forms{.name = "mem"};
    forms.put = [](B* d, const B* s, std::size_t n, int pe) { npushmem_putmem(d, s, n, pe); };
    forms.get = [](B* d, const B* s, std::size_t n, int pe) { npushmem_getmem(d, s, n, pe); };
    forms.put_nbi = [](B* d, const B* s, std::size_t n, int pe) { npushmem_putmem_nbi(d, s, n, pe); };
    forms.get_nbi = [](B* d, const B* s, std::size_t n, int pe) { npushmem_getmem_nbi(d, s, n, pe); };
    forms.put_signal = [](B* d, const B* s, std::size_t n, std::uint64_t* word, std::uint64_t v, int op, int pe) {
        npushmem_putmem_signal(d, s, n, word, v, op, pe);
    };
    forms.put_signal_nbi = [](B* d, const B* s, std::size_t n, std::uint64_t* word, std::uint64_t v, int op, int pe) {
        npushmem_putmem_signal_nbi(d, s, n, word, v, op, pe);
    };
    test_forms<B>(check, job, forms);
}

unsigned char byte_at(int pe, std::size_t index) {
    return static_cast<unsigned char>(index * 7 + index / 251 + static_cast<std::size_t>(pe) * 59);
}

// Odd lengths at odd addresses on both sides, up to beyond a megabyte; the bytes around stay what they were.
void test_large_and_unaligned(Checker& check, const Job& job) {
    constexpr std::size_t room = (1U << 20) + 64;
    constexpr unsigned char around = 0xa5;
    auto* dest = static_cast<unsigned char*>(npushmem_malloc(room));
    if (!check.that("memory for large transfers", dest != nullptr)) return;
    for (const std::size_t bytes : {std::size_t{5}, std::size_t{4097}, std::size_t{65539}, std::size_t{(1U << 20) + 3}})
        for (const std::size_t shift : {1U, 3U, 8U}) {
            std::fill_n(dest, room, around);
            std::vector<unsigned char> source(7);
            for (std::size_t i = 0; i < bytes; ++i) source.push_back(byte_at(job.me, i));
            npushmem_barrier_all();
            npushmem_putmem(dest + shift, source.data() + 7, bytes, job.right());
            npushmem_barrier_all();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < room; ++i) {
                const bool written = i >= shift && i < shift + bytes;
                wrong += dest[i] != (written ? byte_at(job.left(), i - shift) : around);
            }
            check.equal(fmt::format("putmem of {} bytes at {}: wrong bytes", bytes, shift), std::size_t{0}, wrong);
            std::vector<unsigned char> back(bytes + 3, around);
            npushmem_getmem(back.data() + 1, dest + shift, bytes, job.right());
            const bool same = std::equal(back.begin() + 1, back.end() - 2, source.begin() + 7) &&
                              back.front() == around && back.back() == around;
            check.that(fmt::format("getmem of {} bytes at {}", bytes, shift), same);
            npushmem_barrier_all();
        }
    npushmem_free(dest);
}

// Symmetric memory as local source and destination.
void test_symmetric_both_sides(Checker& check, const Job& job) {
    auto* words = static_cast<long*>(npushmem_malloc(3 * sizeof(long)));
    words[0] = job.me + 100;
    words[1] = words[2] = -1;
    npushmem_barrier_all();
    npushmem_long_put(words + 1, words, 1, job.right());
    npushmem_long_get(words + 2, words, 1, job.right());
    npushmem_barrier_all();
    check.equal("put from symmetric memory", long{job.left() + 100}, words[1]);
    check.equal("get into symmetric memory", long{job.right() + 100}, words[2]);
    npushmem_barrier_all();
    npushmem_free(words);
}

// Every PE writes to every PE.
void test_all_to_all(Checker& check, const Job& job) {
    const auto n = static_cast<std::size_t>(job.npes);
    auto* table = static_cast<int*>(npushmem_calloc(n * 5, sizeof(int)));
    for (int pe = 0; pe < job.npes; ++pe) {
        std::array<int, 5> mine{};
        std::iota(mine.begin(), mine.end(), job.me * 1000 + pe * 10);
        npushmem_int_put(table + 5 * job.me, mine.data(), mine.size(), pe);
    }
    npushmem_barrier_all();
    for (int pe = 0; pe < job.npes; ++pe)
        for (int i = 0; i < 5; ++i)
            check.equal(fmt::format("all to all: element {} from PE {}", i, pe), pe * 1000 + job.me * 10 + i,
                        table[5 * pe + i]);
    npushmem_barrier_all();
    npushmem_free(table);
}

// Strides of few and of many elements, as far as where many are moved at once and beyond; what lies between is left.
class StridesTest {
public:
    StridesTest(Checker& check, const Job& job)
        : check_(check), job_(job), array_(static_cast<long*>(npushmem_malloc(room * sizeof(long)))), local_(room) {}
    StridesTest(const StridesTest&) = delete;
    StridesTest& operator=(const StridesTest&) = delete;
    ~StridesTest() { npushmem_free(array_); }

    struct Case {
        std::ptrdiff_t dst, sst;
        std::size_t block, count;
    };
    static constexpr Case puts[] = {{1, 1, 1, 20000}, {1, 2, 1, 20000}, {2, 1, 1, 100},  {3, 5, 1, 64},
                                    {3, 5, 1, 65},    {700, 1, 1, 40},  {1, 700, 1, 40}, {1, 1, 1, 0},
                                    {2, 3, 1, 1},     {3, 4, 3, 5000},  {5, 3, 3, 100},  {4, 4, 0, 9}};
    static constexpr Case gets[] = {{1, 1, 1, 20000}, {1, 2, 1, 19999}, {2, 1, 1, 20000}, {3, 5, 1, 64},
                                    {1, 600, 1, 66},  {1, 512, 1, 70},  {1, 1, 1, 0},     {2, 3, 1, 1},
                                    {4, 3, 3, 5000},  {3, 5, 3, 3000},  {4, 4, 0, 9}};

    void put(const Case& c) {
        std::fill_n(array_, room, -1L);
        for (std::size_t i = 0; i < room; ++i) local_[i] = value(job_.me, i);
        npushmem_barrier_all();
        if (c.block == 1)
            npushmem_long_iput(array_, local_.data(), c.dst, c.sst, c.count, job_.right());
        else
            npushmem_long_ibput(array_, local_.data(), c.dst, c.sst, c.block, c.count, job_.right());
        npushmem_barrier_all();
        compare("put", c, array_, c.dst, c.sst, job_.left());
        npushmem_barrier_all();
    }
    void get(const Case& c) {
        for (std::size_t i = 0; i < room; ++i) array_[i] = value(job_.me, i);
        std::fill(local_.begin(), local_.end(), -1L);
        npushmem_barrier_all();
        if (c.block == 1)
            npushmem_long_iget(local_.data(), array_, c.dst, c.sst, c.count, job_.right());
        else
            npushmem_long_ibget(local_.data(), array_, c.dst, c.sst, c.block, c.count, job_.right());
        compare("get", c, local_.data(), c.dst, c.sst, job_.right());
        npushmem_barrier_all();
    }

private:
    static constexpr std::size_t room = 40000;
    static long value(int pe, std::size_t i) { return 1000000L * (pe + 1) + static_cast<long>(i); }

    void compare(const char* what, const Case& c, const long* seen, std::ptrdiff_t dst, std::ptrdiff_t sst, int from) {
        std::vector<long> expected(room, -1);
        for (std::size_t i = 0; i < c.count; ++i)
            for (std::size_t j = 0; j < c.block; ++j)
                expected[i * static_cast<std::size_t>(dst) + j] = value(from, i * static_cast<std::size_t>(sst) + j);
        const auto [mine, theirs] = std::mismatch(expected.begin(), expected.end(), seen);
        if (mine == expected.end()) return;
        check_.equal(fmt::format("{} of {} blocks of {}, strides {} and {}, element {}", what, c.count, c.block, dst,
                                 sst, mine - expected.begin()),
                     *mine, *theirs);
    }

    Checker& check_;
    const Job& job_;
    long* array_;
    std::vector<long> local_;
};

void test_strides(Checker& check, const Job& job) {
    StridesTest test(check, job);
    for (const auto& c : StridesTest::puts) test.put(c);
    for (const auto& c : StridesTest::gets) test.get(c);
}

void test_rma(Checker& check, const Job& job) {
    test_strides(check, job);
    test_types(check, job);
    test_sizes(check, job);
    test_bytes(check, job);
    test_large_and_unaligned(check, job);
    test_symmetric_both_sides(check, job);
    test_all_to_all(check, job);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("rma", npushmem::api_test::test_rma); }
