// SPDX-License-Identifier: BSD-3-Clause
// Conversions of numbers of 16 bits.
#include "npushmem/npu/half.hpp"

#include "npushmem/npu/bfloat16.hpp"
#include "npushmemx.h"

using npushmem::npu::bfloat16;
using npushmem::npu::half;

extern "C" {

npushmemx_half_t npushmemx_float_to_half(float value) { return {half(value).bits()}; }
float npushmemx_half_to_float(npushmemx_half_t value) { return static_cast<float>(half::from_bits(value.bits)); }
npushmemx_bfloat16_t npushmemx_float_to_bfloat16(float value) { return {bfloat16(value).bits()}; }
float npushmemx_bfloat16_to_float(npushmemx_bfloat16_t value) {
    return static_cast<float>(bfloat16::from_bits(value.bits));
}

}  // extern "C"
