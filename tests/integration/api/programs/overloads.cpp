// SPDX-License-Identifier: BSD-3-Clause
// A program of OpenSHMEM in C++: the overloads find the function of each type, with and without a context.
#include <shmem.h>

#include <complex>
#include <cstdio>

namespace {

int failures = 0;

template <class T>
void expect(const char* what, T expected, T seen) {
    if (expected == seen) return;
    ++failures;
    std::fprintf(stderr, "overloads: %s differs\n", what);
}

template <class T>
void test_rma(int me, int right, int left) {
    T* there = static_cast<T*>(shmem_calloc(6, sizeof(T)));
    auto* signal = static_cast<std::uint64_t*>(shmem_calloc(1, sizeof(std::uint64_t)));
    T here[6];
    for (int i = 0; i < 6; ++i) here[i] = static_cast<T>(me * 6 + i + 1);
    shmem_p(there, here[0], right);
    shmem_p(SHMEM_CTX_DEFAULT, there + 1, here[1], right);
    shmem_put(there + 2, here + 2, 1, right);
    shmem_put_nbi(SHMEM_CTX_DEFAULT, there + 3, here + 3, 1, right);
    shmem_iput(there + 4, here + 4, 1, 1, 1, right);
    shmem_put_signal(SHMEM_CTX_DEFAULT, there + 5, here + 5, 1, signal, 1, SHMEM_SIGNAL_SET, right);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    for (int i = 0; i < 6; ++i) expect("what was put", static_cast<T>(left * 6 + i + 1), there[i]);
    T back[2];
    back[0] = shmem_g(there, right);
    shmem_get(SHMEM_CTX_DEFAULT, back + 1, there + 1, 1, right);
    expect("what was got", here[0], back[0]);
    expect("what was got with a context", here[1], back[1]);
    shmem_barrier_all();
    shmem_free(signal);
    shmem_free(there);
}

template <class T>
void test_atomics(int right) {
    T* word = static_cast<T*>(shmem_calloc(1, sizeof(T)));
    shmem_atomic_set(word, T{3}, right);
    shmem_fence();
    expect("atomic_swap", T{3}, shmem_atomic_swap(SHMEM_CTX_DEFAULT, word, T{4}, right));
    shmem_atomic_inc(word, right);
    shmem_fence();
    expect("atomic_fetch_add", T{5}, shmem_atomic_fetch_add(word, T{2}, right));
    shmem_barrier_all();
    shmem_wait_until(word, SHMEM_CMP_EQ, T{7});
    expect("test", 1, shmem_test(word, SHMEM_CMP_GT, T{6}));
    shmem_barrier_all();
    shmem_free(word);
}

// Types that have no atomics.
template <class T>
void test_short_waits(int right) {
    T* word = static_cast<T*>(shmem_calloc(1, sizeof(T)));
    shmem_p(word, T{7}, right);
    shmem_wait_until(word, SHMEM_CMP_EQ, T{7});
    expect("test of a short type", 1, shmem_test(word, SHMEM_CMP_GT, 6));
    shmem_barrier_all();
    shmem_free(word);
}

// In the standard library's type and in the compiler's own.
template <class T>
void test_complex(int me, int npes) {
    auto* dest = static_cast<T*>(shmem_calloc(2, sizeof(T)));
    auto* source = static_cast<T*>(shmem_calloc(2, sizeof(T)));
    source[0] = source[1] = static_cast<T>(me + 1);
    shmem_barrier_all();
    const auto sum = static_cast<T>(npes * (npes + 1) / 2);
    expect("sum_reduce of complex", 0, shmem_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 2));
    expect("the sum", true, dest[0] == sum && dest[1] == sum);
    expect("sum_inscan of complex", 0, shmem_sum_inscan(SHMEM_TEAM_WORLD, dest, source, 2));
    expect("the sum so far", true, dest[1] == static_cast<T>((me + 1) * (me + 2) / 2));
    shmem_barrier_all();
    shmem_free(source);
    shmem_free(dest);
}

long sync_words[SHMEM_REDUCE_SYNC_SIZE];
npushmem_complexf compilers[3];
std::complex<float> standards[3];

void test_complex_in_sets(int npes) {
    compilers[0] = 2;
    standards[0] = 2;
    shmem_barrier_all();
    shmem_complexf_sum_to_all(compilers + 1, compilers, 1, 0, 0, npes, compilers + 2, sync_words);
    shmem_barrier_all();
    shmem_complexf_sum_to_all(standards + 1, standards, 1, 0, 0, npes, standards + 2, sync_words);
    expect("complexf_sum_to_all", true, compilers[1] == 2.F * static_cast<float>(npes));
    expect("complexf_sum_to_all of std::complex", true, standards[1] == 2.F * static_cast<float>(npes));
}

}  // namespace

int main() {
    shmem_init();
    const int me = shmem_my_pe(), npes = shmem_n_pes();
    const int right = (me + 1) % npes, left = (me + npes - 1) % npes;
#define RUN(NAME, TYPE) test_rma<TYPE>(me, right, left);
    NPUSHMEM_FOR_EACH_RMA_TYPE(RUN)
#undef RUN
#define RUN(NAME, TYPE) test_atomics<TYPE>(right);
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(RUN)
#undef RUN
    test_short_waits<short>(right);
    test_short_waits<unsigned short>(right);
    test_complex<npushmem_complexf>(me, npes);
    test_complex<npushmem_complexd>(me, npes);
    test_complex<std::complex<double>>(me, npes);
    test_complex_in_sets(npes);
    shmem_finalize();
    return failures == 0 ? 0 : 1;
}
