// What a UCX context would go over, as far as UCX tells: by a text that is meant for people.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <string_view>
#include <vector>

namespace npushmem::ucx {

// The transport of each resource: "self", "tcp", "rc_verbs". Empty where the text has none.
std::vector<std::string> transports_of(std::string_view context_info);

// Is TCP the only one that leaves the host? Then UCX does everything but messages by messages of its own.
bool is_tcp_only(const std::vector<std::string>& transports);

// As ucp_context_print_info says it; empty if there is no memory for it.
std::string info_of(ucp_context_h context);

}  // namespace npushmem::ucx
