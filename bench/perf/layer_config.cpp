#include "bench/perf/layer_config.hpp"

namespace npushmem::perf {
namespace {

std::int32_t mode_of(const std::string& name) {
    if (name == "chunked") return NPUSHMEMX_MOE_CHUNKED;
    return name == "stream" ? NPUSHMEMX_MOE_STREAM : NPUSHMEMX_MOE_DIRECT;
}

std::int32_t copy_of(const std::string& name) {
    if (name == "staged") return NPUSHMEMX_MOE_COPY_STAGED;
    if (name == "ordinary") return NPUSHMEMX_MOE_COPY_ORDINARY;
    return name == "streaming" ? NPUSHMEMX_MOE_COPY_STREAMING : NPUSHMEMX_MOE_COPY_AUTO;
}

}  // namespace

npushmemx_moe_config_t layer_config(const CombineCase& c, const CombineOptions& options) {
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    config.experts = c.workload.experts;
    config.top_k = c.workload.top_k;
    config.hidden = c.workload.hidden;
    config.max_tokens = c.workload.tokens;
    config.input_type = static_cast<std::int32_t>(c.workload.type);
    config.output_type = config.input_type;
    config.mode = mode_of(options.mode);
    config.ring = options.ring == "sender" ? NPUSHMEMX_MOE_RING_AT_SENDER : NPUSHMEMX_MOE_RING_AT_RECEIVER;
    config.copy = copy_of(options.copy);
    config.audit = options.audit ? 1 : 0;
    return config;
}

}  // namespace npushmem::perf
