/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of NVSHMEM: every PE sends to its right neighbour on a stream, and waits on the stream for its left one.
 * The data are in memory of the program. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 1000, laps = 5, own_bytes = 65536 };

static int wrong(const float* in, int left, int lap) {
    int differences = 0;
    for (int i = 0; i < count; ++i) differences += in[i] != (float)(left * 1000 + lap + i);
    return differences;
}

int main(void) {
    nvshmem_init();
    const int me = nvshmem_my_pe();
    const int n = nvshmem_n_pes();
    const int left = (me + n - 1) % n;
    int bad = nvshmemx_init_status() != NVSHMEM_STATUS_IS_INITIALIZED;
    float* own = (float*)aligned_alloc(own_bytes, own_bytes); /* whole pages of any size */
    float* out = (float*)malloc(count * sizeof(float));
    if (own == NULL || out == NULL) return 2;
    float* in = (float*)nvshmemx_buffer_register_symmetric(own, own_bytes, 0);
    bad += nvshmemx_buffer_register(out, count * sizeof(float)) != 0;
    uint64_t* arrived = (uint64_t*)nvshmem_calloc(2, sizeof(uint64_t));
    cudaStream_t stream;
    if (in == NULL || arrived == NULL || cudaStreamCreate(&stream) != cudaSuccess) return 2;
    for (int lap = 1; lap <= laps; ++lap) {
        for (int i = 0; i < count; ++i) out[i] = (float)(me * 1000 + lap + i);
        nvshmemx_float_put_signal_on_stream(in, out, count, arrived, (uint64_t)lap, NVSHMEM_SIGNAL_SET, (me + 1) % n,
                                            stream);
        nvshmemx_signal_wait_until_on_stream(arrived, NVSHMEM_CMP_GE, (uint64_t)lap, stream);
        nvshmemx_signal_op_on_stream(arrived + 1, 1, NVSHMEM_SIGNAL_ADD, 0, stream);
        nvshmemx_barrier_all_on_stream(stream);
        bad += cudaStreamSynchronize(stream) != cudaSuccess;
        bad += wrong(in, left, lap) + wrong(own, left, lap);
        nvshmem_barrier_all();
    }
    bad += me == 0 && arrived[1] != (uint64_t)(laps * n);
    bad += nvshmem_ptr(in, me) != in || nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, in) != NULL;
    cudaStreamDestroy(stream);
    nvshmem_free(arrived);
    bad += nvshmemx_buffer_unregister(out) != 0;
    bad += nvshmemx_buffer_unregister_symmetric(in, own_bytes) != 0;
    bad += wrong(own, left, laps);
    printf("NVSHMEM ring: PE %d of %d %s\n", me, n, bad == 0 ? "good" : "BAD");
    nvshmem_finalize();
    free(out);
    free(own);
    return bad != 0;
}
