/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs of OpenSHMEM do beyond the standard's text, or in the words of its earlier versions, and other
 * libraries let pass: they run here as well. Prints what differs; the exit status is 1 then. */
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0;

#define EXPECT(CONDITION)                                                                 \
    do {                                                                                  \
        if (!(CONDITION)) {                                                               \
            ++failures;                                                                   \
            fprintf(stderr, "openshmem_habits.c:%d: not so: %s\n", __LINE__, #CONDITION); \
        }                                                                                 \
    } while (0)

static long sync_words[2][_SHMEM_COLLECT_SYNC_SIZE];
static int work[_SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void test_old_names(int me, int pes) {
    EXPECT(_my_pe() == me && _num_pes() == pes);
    int* word = (int*)shmalloc(sizeof(int));
    *word = -1;
    shmem_barrier_all();
    shmem_int_p(word, me, (me + 1) % pes);
    shmem_int_wait_until(word, _SHMEM_CMP_EQ, (me + pes - 1) % pes);
    shmem_clear_cache_inv();
    shmem_set_cache_line_inv(word);
    shmem_udcflush();
    shmem_barrier_all();
    word = (int*)shrealloc(word, 2 * sizeof(int));
    EXPECT(word != NULL && *word == (me + pes - 1) % pes);
    shfree(word);
    void* aligned = shmemalign(4096, 10);
    EXPECT(aligned != NULL && (uintptr_t)aligned % 4096 == 0);
    shfree(aligned);
}

/* Nothing, from nowhere to nowhere. */
static void test_nothing(int me, int pes) {
    shmem_putmem(NULL, NULL, 0, 0);
    shmem_getmem_nbi(NULL, NULL, 0, 0);
    shmem_int_iput(NULL, NULL, 1, 1, 0, 0);
    EXPECT(shmem_int_broadcast(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0) == 0);
    EXPECT(shmem_int_collect(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
    EXPECT(shmem_int_fcollect(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
    EXPECT(shmem_int_alltoall(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
    EXPECT(shmem_int_alltoalls(SHMEM_TEAM_WORLD, NULL, NULL, 1, 1, 0) == 0);
    EXPECT(shmem_int_sum_reduce(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
    shmem_collect32(NULL, NULL, 0, 0, 0, pes, sync_words[0]);
    shmem_int_and_to_all(NULL, NULL, 0, 0, 0, pes, work, sync_words[1]);
    shmem_barrier_all();
    EXPECT(shmem_malloc(0) == NULL);
    shmem_free(NULL);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    (void)me;
}

/* Memory of the size of each PE's share, before it had to be the same everywhere. */
static void test_sizes(int me, int pes) {
    long* mine = (long*)shmem_malloc((size_t)(me + 1) * sizeof(long));
    long* after = (long*)shmem_malloc(sizeof(long));
    EXPECT(mine != NULL && after != NULL);
    if (mine == NULL || after == NULL) return;
    *after = -1;
    const int right = (me + 1) % pes;
    shmem_barrier_all();
    for (int i = 0; i <= right; ++i) shmem_long_p(mine + i, right, right);
    shmem_barrier_all();
    for (int i = 0; i <= me; ++i) EXPECT(mine[i] == me);
    EXPECT(*after == -1);
    shmem_free(after);
    shmem_free(mine);
}

static void test_configurations(int pes) {
    shmem_team_config_t config = {3};
    shmem_team_t even = SHMEM_TEAM_INVALID;
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, &config, 0, &even) == 0);
    config.num_contexts = -1;
    const int member = even != SHMEM_TEAM_INVALID;
    if (member) EXPECT(shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 && config.num_contexts == 0);
    shmem_team_destroy(even);
    shmem_barrier_all();
}

static void test_memory(void) {
    void* hinted = shmem_malloc_with_hints(64, ~(long)SHMEM_MALLOC_ATOMICS_REMOTE);
    EXPECT(hinted != NULL);
    shmem_free(hinted);
    const size_t alignments[] = {1, 2, 4, (size_t)8 << 20};
    for (int i = 0; i < 4; ++i) {
        void* aligned = shmem_align(alignments[i], 100);
        EXPECT(aligned != NULL && (uintptr_t)aligned % sizeof(void*) == 0 && (uintptr_t)aligned % alignments[i] == 0);
        shmem_free(aligned);
    }
}

int main(void) {
    start_pes(0);
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    int level = -1;
    shmem_query_thread(&level);
    EXPECT(level == SHMEM_THREAD_SINGLE);
    test_old_names(me, pes);
    test_nothing(me, pes);
    /* Where calls are checked, these are mistakes. */
    if (getenv("NPUSHMEM_CHECK") == NULL) test_sizes(me, pes);
    test_configurations(pes);
    test_memory();
    shmem_barrier_all();
    return failures != 0; /* without shmem_finalize */
}
