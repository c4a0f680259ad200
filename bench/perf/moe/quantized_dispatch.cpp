// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/quantized_dispatch.hpp"

#include "bench/perf/job.hpp"

namespace npushmem::perf {

std::int32_t type_of_rows(const std::string& name) {
    if (name == "e4m3") return NPUSHMEMX_MOE_E4M3;
    return name == "e5m2" ? NPUSHMEMX_MOE_E5M2 : NPUSHMEMX_MOE_INT8;
}

Result<std::unique_ptr<QuantizedDispatch>> QuantizedDispatch::create(const CombineCase& c,
                                                                     npushmemx_moe_config_t config,
                                                                     const std::string& type,
                                                                     const std::vector<std::byte>& in,
                                                                     bool quantized_input) {
    config.dispatch_type = type_of_rows(type);
    config.dispatch_input = quantized_input ? NPUSHMEMX_MOE_INPUT_QUANTIZED : NPUSHMEMX_MOE_INPUT_TYPE;
    const bool per_rank = config.rows == NPUSHMEMX_MOE_ROW_PER_RANK;
    std::unique_ptr<QuantizedDispatch> made(new QuantizedDispatch(c, in, per_rank));
    if (npushmemx_moe_create(&config, &made->handle_) != 0) return library_failure();
    if (!quantized_input) return made;
    made->quantized_.resize(static_cast<std::size_t>(c.own_tokens() * made->row_bytes()));
    if (Status quantized = made->quantize(); !quantized.ok()) return quantized;
    return made;
}

Status QuantizedDispatch::quantize() {
    if (npushmemx_moe_quantize(handle_, in_.data(), case_.own_tokens(), quantized_.data()) == 0) return {};
    return library_failure();
}

Status QuantizedDispatch::dispatch() {
    void* x = nullptr;
    const std::byte* const in = quantized_.empty() ? in_.data() : quantized_.data();
    const int code = npushmemx_moe_dispatch(handle_, case_.own_tokens(), in, case_.expert_ids.data(),
                                            case_.weights.data(), per_rank_ ? nullptr : &x);
    return code == 0 ? Status{} : Status{Code::state, npushmemx_moe_error(handle_)};
}

}  // namespace npushmem::perf
