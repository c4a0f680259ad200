#include "npushmem/npu/device_config.hpp"

#include <fmt/format.h>

namespace npushmem::npu {
namespace {

Status out_of_range(const char* what, long long value, const char* rule) {
    return {Code::config, fmt::format("device: {} is {}, must be {}", what, value, rule)};
}

constexpr std::size_t page = 4096;

}  // namespace

Status DeviceConfig::validate() const {
    const auto number = [](std::size_t value) { return static_cast<long long>(value); };
    if (blocks < 1 || blocks > 4096) return out_of_range("blocks", blocks, "1 to 4096");
    if (vector_cores < 1 || vector_cores > 16) return out_of_range("vector_cores", vector_cores, "1 to 16");
    if (ub_bytes == 0 || ub_bytes % page != 0 || ub_bytes > (std::size_t{1} << 30)) {
        return out_of_range("ub_bytes", number(ub_bytes), "a multiple of 4096 up to 1 GiB");
    }
    if (ub_reserved >= ub_bytes || ub_reserved % 32 != 0) {
        return out_of_range("ub_reserved", number(ub_reserved), "a multiple of 32 below ub_bytes");
    }
    if (workers < 1 || workers > 64) return out_of_range("workers", workers, "1 to 64");
    if (stack_bytes < 4 * page || stack_bytes > (std::size_t{1} << 30)) {
        return out_of_range("stack_bytes", number(stack_bytes), "16384 to 1 GiB");
    }
    if (wait_timeout.count() < 0) return out_of_range("wait_timeout (ns)", wait_timeout.count(), "0 (none) or more");
    if (launch_timeout.count() < 0)
        return out_of_range("launch_timeout (ns)", launch_timeout.count(), "0 (none) or more");
    return {};
}

}  // namespace npushmem::npu
