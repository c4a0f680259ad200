#include "transports/trace/call_stats.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::trace {

void CallStats::add(Code code, std::uint64_t bytes, std::chrono::nanoseconds duration) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    nanoseconds_.fetch_add(duration.count(), std::memory_order_relaxed);
    if (code == Code::ok)
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
    else if (code == Code::again)
        again_.fetch_add(1, std::memory_order_relaxed);
    else
        failed_.fetch_add(1, std::memory_order_relaxed);
}

std::string CallStats::summary(std::string_view function) const {
    const std::chrono::nanoseconds total(nanoseconds_.load(std::memory_order_relaxed));
    const auto each = calls() == 0 ? total : total / static_cast<std::int64_t>(calls());
    std::string out = fmt::format("{}: {} {}", function, calls(), calls() == 1 ? "call" : "calls");
    if (bytes() > 0) out += ", " + format_size(bytes());
    out += fmt::format(", {}, {} each", format_duration(total), format_duration(each));
    if (again() > 0) out += fmt::format(", {} times 'again'", again());
    if (failed() > 0) out += fmt::format(", {} failed", failed());
    return out;
}

}  // namespace npushmem::trace
