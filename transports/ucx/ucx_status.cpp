#include "transports/ucx/ucx_status.hpp"

#include <fmt/format.h>

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

}  // namespace npushmem::ucx
