// SPDX-License-Identifier: BSD-3-Clause
// A layer whose dispatch brings quantized rows. Only its time is measured: tests/integration/moe/quantized_rows.cpp
// compares the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/perf/moe/combine_case.hpp"
#include "npushmem/moe.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// The type of quantized rows with this name: "e4m3", "e5m2" or "int8".
std::int32_t type_of_rows(const std::string& name);

class QuantizedDispatch {
public:
    // Collective. type: "e4m3", "e5m2" or "int8"; in: the tokens of this PE; quantized_input: they are quantized once,
    // here, not in each dispatch. `c` and `in` must outlive the object.
    static Result<std::unique_ptr<QuantizedDispatch>> create(const CombineCase& c, npushmemx_moe_config_t config,
                                                             const std::string& type, const std::vector<std::byte>& in,
                                                             bool quantized_input);
    QuantizedDispatch(const QuantizedDispatch&) = delete;
    QuantizedDispatch& operator=(const QuantizedDispatch&) = delete;
    ~QuantizedDispatch() { npushmemx_moe_destroy(handle_); }  // collective

    Status dispatch();
    // The tokens of this PE, alone. Needs quantized_input.
    Status quantize();
    [[nodiscard]] std::int64_t row_bytes() const { return npushmemx_moe_row_bytes(handle_); }

private:
    QuantizedDispatch(const CombineCase& c, const std::vector<std::byte>& in, bool per_rank)
        : case_(c), in_(in), per_rank_(per_rank) {}

    const CombineCase& case_;
    const std::vector<std::byte>& in_;
    bool per_rank_;
    npushmemx_moe_t* handle_ = nullptr;
    std::vector<std::byte> quantized_;  // empty: each dispatch quantizes
};

}  // namespace npushmem::perf
