/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of NVSHMEM with what host code does around its transfers: it selects a device and makes a stream before the
 * start, copies to device memory and back in the order of the stream, and keeps teams as numbers. With an argument it
 * reports how a start ends that fails. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>
#include <string.h>

#define CUDA_CHECK(CALL)                                                                 \
    do {                                                                                 \
        const cudaError_t code = (CALL);                                                 \
        if (code != cudaSuccess) {                                                       \
            printf("PE %d: %s: %s\n", nvshmem_my_pe(), #CALL, cudaGetErrorString(code)); \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

enum { count = 256 };

static int transfers(int me, int n, cudaStream_t stream) {
    int host[count];
    int* device = NULL;
    int* symmetric = (int*)nvshmem_calloc(count, sizeof(int));
    int bad = 0;
    CUDA_CHECK(cudaMalloc((void**)&device, sizeof host));
    CUDA_CHECK(cudaMemset(device, 0, sizeof host));
    for (int i = 0; i < count; ++i) host[i] = me * 1000 + i;
    CUDA_CHECK(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, stream));
    nvshmemx_int_put_nbi_on_stream(symmetric, device, count, (me + 1) % n, stream);
    nvshmemx_flush_on_stream(stream);
    CUDA_CHECK(cudaMemsetAsync(device, 0, sizeof host, stream)); /* after the put has read it */
    nvshmemx_barrier_all_on_stream(stream);
    /* Returns when the barrier and the get have ended. */
    bad += nvshmemx_int_g_on_stream(symmetric + 7, (me + 1) % n, stream) != me * 1000 + 7;
    CUDA_CHECK(cudaMemcpyAsync(device, symmetric, sizeof host, cudaMemcpyDefault, stream));
    CUDA_CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost)); /* waits for the streams */
    for (int i = 0; i < count; ++i) bad += host[i] != (me + n - 1) % n * 1000 + i;
    nvshmem_int_put_nbi(symmetric, host, count, me);
    nvshmemx_flush();
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaFree(device));
    nvshmem_free(symmetric);
    return bad;
}

static int teams(int me, int n) {
    nvshmem_team_t made[3] = {NVSHMEM_TEAM_INVALID, NVSHMEM_TEAM_INVALID, NVSHMEM_TEAM_INVALID};
    int bad = nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) != n || nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) != -1;
    for (int i = 0; i < 3; ++i) bad += nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, made + i) != 0;
    /* Small numbers behind those of the predefined teams, all different. */
    for (int i = 0; i < 3; ++i) {
        bad += made[i] <= NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX || made[i] > 100000 || made[i] == made[(i + 1) % 3];
        bad += nvshmem_team_translate_pe(made[i], me, NVSHMEM_TEAM_WORLD_INDEX) != me;
    }
    nvshmem_team_destroy(made[1]);
    bad += nvshmem_team_sync(made[0]) != 0 || nvshmem_team_sync(made[2]) != 0;
    nvshmem_team_destroy(made[2]);
    nvshmem_team_destroy(made[0]);
    return bad;
}

static int queries(void) {
    int bad = 0;
    int level = -1;
    int version[3] = {0, 0, 0};
    int device = -1;
    nvshmem_query_thread(&level);
    bad += level != NVSHMEM_THREAD_SERIALIZED;
    nvshmemx_vendor_get_version_info(version, version + 1, version + 2);
    bad += version[0] * 10000 + version[1] * 100 + version[2] != NVSHMEM_VENDOR_VERSION;
    bad += cudaGetDeviceCount(&device) != cudaSuccess || device != 1;
    bad += cudaGetDevice(&device) != cudaSuccess || device != 0;
    bad += strcmp(cudaGetErrorString(cudaSuccess), "no error") != 0;
    bad += __half2float(__float2half(1.0F / 3)) != 0.333251953125F;
    bad += __bfloat162float(__float2bfloat16(1.0F / 3)) != 0.333984375F;
    return bad;
}

/* A start that fails. */
static int fail(const char* how) {
    int code = 0;
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (strcmp(how, "init") == 0) nvshmem_init();
    if (strcmp(how, "init_thread") == 0) nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, NULL);
    if (strcmp(how, "init_attr") == 0) nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr); /* none is set */
    if (strcmp(how, "hostlib") == 0) code = nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_THREAD_PES, &attr);
    printf("went on with status %d and code %s 0\n", nvshmemx_init_status(), code < 0 ? "below" : "not below");
    return 0;
}

int main(int argc, char** argv) {
    cudaStream_t stream;
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (argc > 1) return fail(argv[1]);
    nvshmem_init();
    const int me = nvshmem_my_pe();
    const int n = nvshmem_n_pes();
    const int bad = transfers(me, n, stream) + teams(me, n) + queries();
    printf("NVSHMEM habits: PE %d of %d %s\n", me, n, bad == 0 ? "good" : "BAD");
    nvshmem_barrier_all();
    nvshmem_finalize();
    CUDA_CHECK(cudaStreamDestroy(stream));
    return bad != 0;
}
