/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of OpenSHMEM in C11, as others write it: standard header, generic functions, and a profiling tool's
 * replacement of one of them. Prints what differs; the exit status is 1 then. */
#include <pshmem.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;
static int profiled = 0;

#define EXPECT(CONDITION)                                                          \
    do {                                                                           \
        if (!(CONDITION)) {                                                        \
            ++failures;                                                            \
            fprintf(stderr, "openshmem.c:%d: not so: %s\n", __LINE__, #CONDITION); \
        }                                                                          \
    } while (0)

/* Stands in front of the library's, as a tool would. */
void shmem_short_put(short* dest, const short* source, size_t count, int pe) {
    ++profiled;
    pshmem_short_put(dest, source, count, pe);
}

/* Every generic of put and get, with and without a context, for one type. */
#define TEST_RMA(NAME, TYPE)                                                                                   \
    static void test_rma_##NAME(int me, int right, int left) {                                                 \
        TYPE* there = shmem_calloc(12, sizeof(TYPE));                                                          \
        uint64_t* signal = shmem_calloc(1, sizeof(uint64_t));                                                  \
        TYPE here[12];                                                                                         \
        for (int i = 0; i < 12; ++i) here[i] = (TYPE)(me * 12 + i + 1);                                        \
        shmem_p(there, here[0], right);                                                                        \
        shmem_p(SHMEM_CTX_DEFAULT, there + 1, here[1], right);                                                 \
        shmem_put(there + 2, here + 2, 1, right);                                                              \
        shmem_put(SHMEM_CTX_DEFAULT, there + 3, here + 3, 1, right);                                           \
        shmem_put_nbi(there + 4, here + 4, 1, right);                                                          \
        shmem_put_nbi(SHMEM_CTX_DEFAULT, there + 5, here + 5, 1, right);                                       \
        shmem_iput(there + 6, here + 6, 1, 1, 1, right);                                                       \
        shmem_iput(SHMEM_CTX_DEFAULT, there + 7, here + 7, 1, 1, 1, right);                                    \
        shmem_ibput(there + 8, here + 8, 1, 1, 1, 1, right);                                                   \
        shmem_ibput(SHMEM_CTX_DEFAULT, there + 9, here + 9, 1, 1, 1, 1, right);                                \
        shmem_quiet();                                                                                         \
        shmem_put_signal(there + 10, here + 10, 1, signal, 1, SHMEM_SIGNAL_ADD, right);                        \
        shmem_put_signal_nbi(SHMEM_CTX_DEFAULT, there + 11, here + 11, 1, signal, 1, SHMEM_SIGNAL_ADD, right); \
        shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 2);                                                      \
        shmem_barrier_all();                                                                                   \
        for (int i = 0; i < 12; ++i) EXPECT(there[i] == (TYPE)(left * 12 + i + 1));                            \
        TYPE back[12];                                                                                         \
        const TYPE* source = there;                                                                            \
        back[0] = shmem_g(there, right);                                                                       \
        back[1] = shmem_g(SHMEM_CTX_DEFAULT, source + 1, right);                                               \
        shmem_get(back + 2, source + 2, 1, right);                                                             \
        shmem_get(SHMEM_CTX_DEFAULT, back + 3, source + 3, 1, right);                                          \
        shmem_get_nbi(back + 4, source + 4, 1, right);                                                         \
        shmem_get_nbi(SHMEM_CTX_DEFAULT, back + 5, source + 5, 1, right);                                      \
        shmem_iget(back + 6, source + 6, 1, 1, 1, right);                                                      \
        shmem_iget(SHMEM_CTX_DEFAULT, back + 7, source + 7, 1, 1, 1, right);                                   \
        shmem_ibget(back + 8, source + 8, 1, 1, 1, 1, right);                                                  \
        shmem_ibget(SHMEM_CTX_DEFAULT, back + 9, source + 9, 1, 1, 3, 1, right);                               \
        shmem_quiet();                                                                                         \
        for (int i = 0; i < 12; ++i) EXPECT(back[i] == here[i]);                                               \
        shmem_barrier_all();                                                                                   \
        shmem_free(signal);                                                                                    \
        shmem_free(there);                                                                                     \
    }
NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_RMA)

#define TEST_ATOMICS(NAME, TYPE)                                                  \
    static void test_atomics_##NAME(int right) {                                  \
        TYPE* word = shmem_calloc(1, sizeof(TYPE));                               \
        TYPE old = 0;                                                             \
        shmem_atomic_set(word, (TYPE)3, right);                                   \
        shmem_fence();                                                            \
        EXPECT(shmem_atomic_fetch(word, right) == 3);                             \
        EXPECT(shmem_atomic_swap(SHMEM_CTX_DEFAULT, word, (TYPE)4, right) == 3);  \
        EXPECT(shmem_atomic_compare_swap(word, (TYPE)4, (TYPE)5, right) == 4);    \
        shmem_atomic_inc(word, right);                                            \
        shmem_fence();                                                            \
        shmem_atomic_add(SHMEM_CTX_DEFAULT, word, (TYPE)2, right);                \
        shmem_fence();                                                            \
        EXPECT(shmem_atomic_fetch_add(word, (TYPE)1, right) == 8);                \
        EXPECT(shmem_atomic_fetch_inc(SHMEM_CTX_DEFAULT, word, right) == 9);      \
        shmem_atomic_fetch_nbi(&old, word, right);                                \
        shmem_quiet();                                                            \
        EXPECT(old == 10);                                                        \
        shmem_barrier_all();                                                      \
        shmem_wait_until(word, SHMEM_CMP_GE, (TYPE)10);                           \
        EXPECT(shmem_test(word, SHMEM_CMP_EQ, (TYPE)10) == 1);                    \
        EXPECT(shmem_wait_until_any(word, 1, NULL, SHMEM_CMP_EQ, (TYPE)10) == 0); \
        EXPECT(shmem_test_all(word, 1, NULL, SHMEM_CMP_NE, (TYPE)0) == 1);        \
        shmem_free(word);                                                         \
    }
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(TEST_ATOMICS)

/* Deprecated types of wait_until and test, by their names and generically. */
#define TEST_SHORT_WAITS(NAME, TYPE)                                   \
    static void test_short_waits_##NAME(int right) {                   \
        TYPE* words = shmem_calloc(2, sizeof(TYPE));                   \
        shmem_p(words, (TYPE)-2, right);                               \
        shmem_wait_until(words, SHMEM_CMP_EQ, (TYPE)-2);               \
        EXPECT(shmem_test(words, SHMEM_CMP_EQ, (TYPE)-2) == 1);        \
        shmem_p(words + 1, (TYPE)3, right);                            \
        shmem_##NAME##_wait_until(words + 1, SHMEM_CMP_GE, 3);         \
        EXPECT(pshmem_##NAME##_test(words + 1, SHMEM_CMP_GT, 2) == 1); \
        pshmem_##NAME##_wait_until(words + 1, SHMEM_CMP_LE, 3);        \
        shmem_barrier_all();                                           \
        shmem_free(words);                                             \
    }
NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(TEST_SHORT_WAITS)

#define TEST_BITWISE(NAME, TYPE)                                                      \
    static void test_bitwise_##NAME(int right) {                                      \
        TYPE* word = shmem_calloc(1, sizeof(TYPE));                                   \
        shmem_atomic_or(word, (TYPE)6, right);                                        \
        shmem_fence();                                                                \
        EXPECT(shmem_atomic_fetch_and(word, (TYPE)3, right) == 6);                    \
        EXPECT(shmem_atomic_fetch_xor(SHMEM_CTX_DEFAULT, word, (TYPE)1, right) == 2); \
        shmem_quiet();                                                                \
        EXPECT(shmem_atomic_fetch_or(word, (TYPE)8, right) == 3);                     \
        shmem_barrier_all();                                                          \
        EXPECT(*word == 11);                                                          \
        shmem_barrier_all();                                                          \
        shmem_free(word);                                                             \
    }
NPUSHMEM_FOR_EACH_BITWISE_TYPE(TEST_BITWISE)

/* Reductions by and, or, xor of the types that have fixed sizes, and of long long, which is none of them. */
#define TEST_BITWISE_REDUCTIONS(TYPE)                                                             \
    do {                                                                                          \
        TYPE* source = shmem_calloc(3, sizeof(TYPE));                                             \
        TYPE* dest = shmem_calloc(3, sizeof(TYPE));                                               \
        for (int i = 0; i < 3; ++i) source[i] = (TYPE)(me % 2 == 0 ? 5 : 3);                      \
        const TYPE odd = npes % 2 != 0 ? 1 : 0, pairs = (npes / 2) % 2 != 0 ? 1 : 0;              \
        EXPECT(shmem_and_reduce(SHMEM_TEAM_WORLD, dest, source, 3) == 0);                         \
        EXPECT(dest[2] == (npes == 1 ? 5 : 1));                                                   \
        EXPECT(shmem_or_reduce(SHMEM_TEAM_WORLD, dest, source, 3) == 0);                          \
        EXPECT(dest[2] == (npes == 1 ? 5 : 7));                                                   \
        EXPECT(shmem_xor_reduce(SHMEM_TEAM_WORLD, dest, (const TYPE*)source, 3) == 0);            \
        EXPECT(dest[0] == (TYPE)((odd ^ pairs ? 5 : 0) ^ (pairs ? 3 : 0)) && dest[2] == dest[0]); \
        shmem_free(dest);                                                                         \
        shmem_free(source);                                                                       \
    } while (0)

static void test_bitwise_reductions(int me, int npes) {
    TEST_BITWISE_REDUCTIONS(int8_t);
    TEST_BITWISE_REDUCTIONS(int16_t);
    TEST_BITWISE_REDUCTIONS(int32_t);
    TEST_BITWISE_REDUCTIONS(int64_t);
    TEST_BITWISE_REDUCTIONS(long long);
}

static void test_old_names(int right) {
    long* words = shmem_calloc(2, sizeof(long));
    short* small = shmem_calloc(1, sizeof(short));
    const short value = 7;
    shmem_long_add(words, 5, right);
    shmem_inc(words, right);
    shmem_fence();
    EXPECT(shmem_fadd(words, 4L, right) == 6);
    EXPECT(shmem_long_finc(words, right) == 10);
    EXPECT(shmem_cswap(words, 11L, 20L, right) == 11);
    EXPECT(shmem_swap(words, 21L, right) == 20);
    shmem_set(words + 1, 9L, right);
    EXPECT(shmem_fetch(words, right) == 21);
    shmem_long_wait(words + 1, 0);
    shmem_wait_until(words + 1, SHMEM_CMP_EQ, 9);
    EXPECT(words[1] == 9);
    shmem_put(small, &value, 1, right);
    shmem_short_wait(small, 0);
    EXPECT(*small == 7 && profiled >= 1);
    shmem_barrier_all();
    shmem_free(small);
    shmem_free(words);
}

static void test_facts(int npes) {
    int major = 0, minor = 0, up = 0, level = -1;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    EXPECT(major == 1 && minor == 6 && major == _SHMEM_MAJOR_VERSION);
    EXPECT(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    shmem_query_initialized(&up);
    shmem_query_thread(&level);
    EXPECT(up == 1 && level >= SHMEM_THREAD_SINGLE);
    EXPECT(shmem_pe_accessible(0) == 1 && shmem_pe_accessible(npes) == 0);
    shmem_pcontrol(1, "whatever");
}

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), npes = shmem_n_pes();
    const int right = (me + 1) % npes, left = (me + npes - 1) % npes;
    test_facts(npes);
#define RUN(NAME, TYPE) test_rma_##NAME(me, right, left);
    NPUSHMEM_FOR_EACH_RMA_TYPE(RUN)
#undef RUN
#define RUN(NAME, TYPE) test_atomics_##NAME(right);
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(RUN)
#undef RUN
#define RUN(NAME, TYPE) test_bitwise_##NAME(right);
    NPUSHMEM_FOR_EACH_BITWISE_TYPE(RUN)
#undef RUN
#define RUN(NAME, TYPE) test_short_waits_##NAME(right);
    NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(RUN)
#undef RUN
    test_bitwise_reductions(me, npes);
    test_old_names(right);
    shmem_finalize();
    return failures == 0 ? 0 : 1;
}
