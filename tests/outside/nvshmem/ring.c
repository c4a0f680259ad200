/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of NVSHMEM: every PE sends to its right neighbour on a stream, and waits on the stream for its left one. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>

enum { count = 1000, laps = 5 };

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
    float* in = (float*)nvshmem_calloc(count, sizeof(float));
    float* out = (float*)nvshmem_malloc(count * sizeof(float));
    uint64_t* arrived = (uint64_t*)nvshmem_calloc(2, sizeof(uint64_t));
    cudaStream_t stream;
    if (in == NULL || out == NULL || arrived == NULL || cudaStreamCreate(&stream) != cudaSuccess) return 2;
    for (int lap = 1; lap <= laps; ++lap) {
        for (int i = 0; i < count; ++i) out[i] = (float)(me * 1000 + lap + i);
        nvshmemx_float_put_signal_on_stream(in, out, count, arrived, (uint64_t)lap, NVSHMEM_SIGNAL_SET, (me + 1) % n,
                                            stream);
        nvshmemx_signal_wait_until_on_stream(arrived, NVSHMEM_CMP_GE, (uint64_t)lap, stream);
        nvshmemx_signal_op_on_stream(arrived + 1, 1, NVSHMEM_SIGNAL_ADD, 0, stream);
        nvshmemx_barrier_all_on_stream(stream);
        bad += cudaStreamSynchronize(stream) != cudaSuccess;
        bad += wrong(in, left, lap);
        nvshmem_barrier_all();
    }
    bad += me == 0 && arrived[1] != (uint64_t)(laps * n);
    bad += nvshmem_ptr(in, me) != in || nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, in) != NULL;
    printf("NVSHMEM ring: PE %d of %d %s\n", me, n, bad == 0 ? "good" : "BAD");
    cudaStreamDestroy(stream);
    nvshmem_free(arrived);
    nvshmem_free(out);
    nvshmem_free(in);
    nvshmem_finalize();
    return bad != 0;
}
