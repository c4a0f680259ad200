#include "transports/ucx/context_info.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace npushmem::ucx {

// Lines like "#      resource 1  :  md 1  dev 1  flags -- tcp/eth0"; each flag has a letter or a dash.
std::vector<std::string> transports_of(std::string_view context_info) {
    constexpr std::string_view begin = " flags ";
    constexpr std::size_t flags = 3;
    std::vector<std::string> out;
    while (!context_info.empty()) {
        const std::string_view line = context_info.substr(0, context_info.find('\n'));
        context_info.remove_prefix(std::min(line.size() + 1, context_info.size()));
        const std::size_t at = line.find(begin);
        if (at == std::string_view::npos) continue;
        const std::string_view name = line.substr(std::min(at + begin.size() + flags, line.size()));
        const std::size_t slash = name.find('/');
        if (slash != std::string_view::npos) out.emplace_back(name.substr(0, slash));
    }
    return out;
}

bool is_tcp_only(const std::vector<std::string>& transports) {
    constexpr std::array within_host{"self", "sysv", "posix", "cma", "knem", "xpmem"};
    const auto leaves = [&](const std::string& name) {
        return std::find(within_host.begin(), within_host.end(), name) == within_host.end();
    };
    const auto other = [&](const std::string& name) { return leaves(name) && name != "tcp"; };
    return std::find(transports.begin(), transports.end(), "tcp") != transports.end() &&
           std::none_of(transports.begin(), transports.end(), other);
}

std::string info_of(ucp_context_h context) {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* const stream = ::open_memstream(&text, &bytes);
    if (stream == nullptr) return {};
    ucp_context_print_info(context, stream);
    std::string out = std::fclose(stream) == 0 ? std::string(text, bytes) : std::string();
    std::free(text);
    return out;
}

}  // namespace npushmem::ucx
