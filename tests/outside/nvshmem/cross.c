/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of NVSHMEM with two streams. PE 0 waits for the others on one stream and enters a barrier on the other one.
 * The others enter the barrier after PE 0's wait has ended. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <sched.h>
#include <stdio.h>

enum { laps = 3 };
enum { waiting, entering, ready, released, passed, words };

/* Waits on the host, so that only the device's own threads run the streams. */
static void await(uint64_t* word, uint64_t value) {
    while (nvshmem_signal_fetch(word) < value) sched_yield();
}

static void lead(uint64_t* at, uint64_t lap, int n, cudaStream_t a, cudaStream_t b) {
    nvshmemx_signal_op_on_stream(at + waiting, lap, NVSHMEM_SIGNAL_SET, 0, a);
    nvshmemx_signal_wait_until_on_stream(at + ready, NVSHMEM_CMP_GE, lap * (uint64_t)(n - 1), a);
    for (int pe = 1; pe < n; ++pe) nvshmemx_signal_op_on_stream(at + released, lap, NVSHMEM_SIGNAL_SET, pe, a);
    await(at + waiting, lap);
    for (int pe = 1; pe < n; ++pe) nvshmemx_signal_op_on_stream(at + entering, lap, NVSHMEM_SIGNAL_SET, pe, b);
    nvshmemx_barrier_all_on_stream(b);
}

static void follow(uint64_t* at, uint64_t lap, cudaStream_t a, cudaStream_t b) {
    await(at + entering, lap);
    nvshmemx_signal_op_on_stream(at + ready, 1, NVSHMEM_SIGNAL_ADD, 0, a);
    nvshmemx_signal_wait_until_on_stream(at + released, NVSHMEM_CMP_GE, lap, a);
    cudaStreamSynchronize(a);
    nvshmemx_barrier_all_on_stream(b);
}

int main(void) {
    nvshmem_init();
    const int me = nvshmem_my_pe();
    const int n = nvshmem_n_pes();
    uint64_t* at = (uint64_t*)nvshmem_calloc(words, sizeof(uint64_t));
    cudaStream_t a;
    cudaStream_t b;
    if (at == NULL || cudaStreamCreate(&a) != cudaSuccess || cudaStreamCreate(&b) != cudaSuccess) return 2;
    for (uint64_t lap = 1; lap <= laps; ++lap) {
        if (me == 0)
            lead(at, lap, n, a, b);
        else
            follow(at, lap, a, b);
        nvshmemx_signal_op_on_stream(at + passed, lap, NVSHMEM_SIGNAL_SET, me, b);
        await(at + passed, lap);
    }
    const int bad = cudaStreamSynchronize(a) != cudaSuccess || cudaStreamSynchronize(b) != cudaSuccess;
    printf("NVSHMEM cross: PE %d of %d %s\n", me, n, bad == 0 ? "good" : "BAD");
    cudaStreamDestroy(b);
    cudaStreamDestroy(a);
    nvshmem_free(at);
    nvshmem_finalize();
    return bad != 0;
}
