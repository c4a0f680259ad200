/* SPDX-License-Identifier: BSD-3-Clause */
/* What host code of NVSHMEM programs uses of CUDA: streams, memory, errors and numbers of 16 bits, by npushmem and the
 * C library. Included by npushmem/nvshmem.h, unless NPUSHMEM_NO_CUDA_NAMES is defined.
 *
 * There is one device, whose memory is that of the process. Functions return 0 or a code: cudaErrorMemoryAllocation, or
 * a negative one of npushmem/plugin/abi.h, with a report. Streams do not wait for each other, nor for the default one,
 * so cudaStreamNonBlocking is the same as the default. cudaMemcpy and cudaMemset wait for all streams first. */
#ifndef NPUSHMEM_NVSHMEM_CUDA_H
#define NPUSHMEM_NVSHMEM_CUDA_H

#include <stdlib.h>
#include <string.h>

#include "npushmemx.h"

/* In C++20 the types of the kernel language, which have arithmetic; otherwise their bits. */
#if defined(__cplusplus) && __cplusplus >= 202002L
#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"
using half = npushmem::npu::half;
using __nv_bfloat16 = npushmem::npu::bfloat16;
#else
typedef npushmemx_half_t half;
typedef npushmemx_bfloat16_t __nv_bfloat16;
#endif
typedef half __half;
typedef __nv_bfloat16 nv_bfloat16;

typedef npushmemx_stream_t cudaStream_t;
typedef int cudaError_t;
#define cudaSuccess 0
#define cudaErrorInvalidDevice 101
#define cudaErrorMemoryAllocation 2
#define cudaStreamDefault 0U
#define cudaStreamNonBlocking 1U
/* Memory is of one kind: the direction of a copy is not read. */
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

/* Shared headers of host and device code; functions for both are functions of the host. */
#if !defined(__host__)
#define __host__
#endif
#if !defined(__device__)
#define __device__
#endif
#if !defined(__forceinline__)
#define __forceinline__ inline __attribute__((always_inline))
#endif
#if !defined(__global__)
#define __global__ \
    _Pragma("GCC error \"npushmem has no CUDA device code: write kernels in the language of npushmem/npu/npu.hpp\"")
#endif

#ifdef __cplusplus
#define NPUSHMEM_NV_DEFAULT(VALUE) = VALUE
extern "C" {
#else
#define NPUSHMEM_NV_DEFAULT(VALUE)
#endif

/* ---- Numbers of 16 bits -------------------------------------------------------------------------------------------
 */

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif
NPUSHMEM_API half __float2half(float value) __asm__("npushmemx_float_to_half");
NPUSHMEM_API half __float2half_rn(float value) __asm__("npushmemx_float_to_half");
NPUSHMEM_API float __half2float(half value) __asm__("npushmemx_half_to_float");
NPUSHMEM_API __nv_bfloat16 __float2bfloat16(float value) __asm__("npushmemx_float_to_bfloat16");
NPUSHMEM_API __nv_bfloat16 __float2bfloat16_rn(float value) __asm__("npushmemx_float_to_bfloat16");
NPUSHMEM_API float __bfloat162float(__nv_bfloat16 value) __asm__("npushmemx_bfloat16_to_float");
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/* ---- Streams ------------------------------------------------------------------------------------------------------
 */

/* May be called before the start of the library. */
NPUSHMEM_API cudaError_t cudaStreamCreate(cudaStream_t* stream) __asm__("npushmemx_stream_create");
NPUSHMEM_API cudaError_t cudaStreamDestroy(cudaStream_t stream) __asm__("npushmemx_stream_destroy");
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    (void)flags;
    return cudaStreamCreate(stream);
}
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
    (void)flags;
    (void)priority;
    return cudaStreamCreate(stream);
}
static inline int npushmem_nv_is_running(void) {
    int initialized = 0;
    npushmem_query_initialized(&initialized);
    return initialized;
}
/* Before the start and after the end nothing is queued. */
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return npushmem_nv_is_running() ? npushmemx_stream_synchronize(stream) : cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize(void) {
    return npushmem_nv_is_running() ? npushmemx_device_synchronize() : cudaSuccess;
}

/* ---- Devices and errors -------------------------------------------------------------------------------------------
 */

static inline cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
/* Programs select a device by the number of the PE on its host: every number is the one device. */
static inline cudaError_t cudaSetDevice(int device) { return device >= 0 ? cudaSuccess : cudaErrorInvalidDevice; }
/* The message of a negative code is that of the calling thread's last failure. */
static inline const char* cudaGetErrorString(cudaError_t error) {
    const char* message = "";
    if (error == cudaSuccess) return "no error";
    if (error == cudaErrorMemoryAllocation) return "out of memory";
    if (error == cudaErrorInvalidDevice) return "invalid device";
    npushmemx_last_error(&message);
    return message;
}

/* ---- Memory -------------------------------------------------------------------------------------------------------
 */

static inline cudaError_t cudaMallocHost(void** memory, size_t bytes) {
    *memory = bytes != 0 ? malloc(bytes) : 0;
    return *memory != 0 || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaMalloc(void** memory, size_t bytes) { return cudaMallocHost(memory, bytes); }
static inline cudaError_t cudaFreeHost(void* memory) {
    free(memory);
    return cudaSuccess;
}
static inline cudaError_t cudaFree(void* memory) {
    const cudaError_t code = cudaDeviceSynchronize();
    free(memory);
    return code;
}
static inline cudaError_t cudaMemcpy(void* dest, const void* source, size_t bytes, enum cudaMemcpyKind kind) {
    const cudaError_t code = cudaDeviceSynchronize();
    (void)kind;
    if (code == cudaSuccess && bytes != 0) memcpy(dest, source, bytes);
    return code;
}
static inline cudaError_t cudaMemset(void* dest, int value, size_t bytes) {
    const cudaError_t code = cudaDeviceSynchronize();
    if (code == cudaSuccess && bytes != 0) memset(dest, value, bytes);
    return code;
}
static inline cudaError_t cudaMemcpyAsync(void* dest, const void* source, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream NPUSHMEM_NV_DEFAULT(0)) {
    (void)kind;
    return npushmemx_memcpy_on_stream(dest, source, bytes, stream);
}
static inline cudaError_t cudaMemsetAsync(void* dest, int value, size_t bytes,
                                          cudaStream_t stream NPUSHMEM_NV_DEFAULT(0)) {
    return npushmemx_memset_on_stream(dest, value, bytes, stream);
}

#undef NPUSHMEM_NV_DEFAULT
#ifdef __cplusplus
}

/* As in CUDA, any pointer receives memory. */
template <class T>
inline cudaError_t cudaMalloc(T** memory, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
template <class T>
inline cudaError_t cudaMallocHost(T** memory, size_t bytes) {
    return cudaMallocHost(reinterpret_cast<void**>(memory), bytes);
}
#endif

#endif
