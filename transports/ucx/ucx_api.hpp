// What UCX's codes are to the runtime and to people.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/type/status.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::ucx {

// What a status means for whoever called.
Code code_of_status(ucs_status_t status);
std::string text_of(ucs_status_t status);
// `what`: the call that has failed.
Status failure(const char* what, ucs_status_t status);

// What atomic operations are to UCX.
struct UcxAtomic {
    ucp_atomic_op_t operation;
    enum class Reply { none, dropped, wanted } reply;
};

// Of an NPUSHMEM_ATOMIC_x of 64 bits; nothing: it is not UCX's.
std::optional<UcxAtomic> atomic_of(int operation);

// What a UCX context would go over, as far as UCX tells: by a text that is meant for people.

// The transport of each resource: "self", "tcp", "rc_verbs". Empty where the text has none.
std::vector<std::string> transports_of(std::string_view context_info);

// Is TCP the only one that leaves the host? Then UCX does everything but messages by messages of its own.
bool is_tcp_only(const std::vector<std::string>& transports);

// As ucp_context_print_info says it; empty if there is no memory for it.
std::string info_of(ucp_context_h context);

}  // namespace npushmem::ucx
