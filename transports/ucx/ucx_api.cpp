#include "transports/ucx/ucx_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "npushmem/plugin/transport.h"

namespace npushmem::ucx {

Code code_of_status(ucs_status_t status) {
    switch (status) {
        case UCS_OK: return Code::ok;
        case UCS_ERR_NO_RESOURCE: return Code::again;
        case UCS_ERR_NO_MEMORY: return Code::memory;
        case UCS_ERR_INVALID_PARAM: return Code::argument;
        case UCS_ERR_UNREACHABLE:
        case UCS_ERR_NO_DEVICE: return Code::unreachable;
        case UCS_ERR_UNSUPPORTED:
        case UCS_ERR_NOT_IMPLEMENTED: return Code::unsupported;
        case UCS_ERR_TIMED_OUT:
        case UCS_ERR_ENDPOINT_TIMEOUT: return Code::timeout;
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_REJECTED:
        case UCS_ERR_CANCELED: return Code::peer_dead;
        default: return Code::system;
    }
}

std::string text_of(ucs_status_t status) { return ucs_status_string(status); }

Status failure(const char* what, ucs_status_t status) {
    return {code_of_status(status), fmt::format("{}: {}", what, text_of(status))};
}

Status system_failure(const char* what) {
    return {Code::system, fmt::format("{} for UCX: {}", what, std::strerror(errno))};
}

std::optional<UcxAtomic> atomic_of(int operation) {
    using Reply = UcxAtomic::Reply;
    switch (operation) {
        case NPUSHMEM_ATOMIC_FETCH:  // adds 0
        case NPUSHMEM_ATOMIC_FETCH_ADD: return UcxAtomic{UCP_ATOMIC_OP_ADD, Reply::wanted};
        case NPUSHMEM_ATOMIC_SET: return UcxAtomic{UCP_ATOMIC_OP_SWAP, Reply::dropped};
        case NPUSHMEM_ATOMIC_ADD: return UcxAtomic{UCP_ATOMIC_OP_ADD, Reply::none};
        case NPUSHMEM_ATOMIC_AND: return UcxAtomic{UCP_ATOMIC_OP_AND, Reply::none};
        case NPUSHMEM_ATOMIC_OR: return UcxAtomic{UCP_ATOMIC_OP_OR, Reply::none};
        case NPUSHMEM_ATOMIC_XOR: return UcxAtomic{UCP_ATOMIC_OP_XOR, Reply::none};
        case NPUSHMEM_ATOMIC_SWAP: return UcxAtomic{UCP_ATOMIC_OP_SWAP, Reply::wanted};
        case NPUSHMEM_ATOMIC_COMPARE_SWAP: return UcxAtomic{UCP_ATOMIC_OP_CSWAP, Reply::wanted};
        default: return std::nullopt;
    }
}

// Parses lines such as "# resource 1 : md 1 dev 1 flags -- tcp/eth0"; each flag is a letter or a dash.
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
