// What rank 0 tells all ranks through the launcher: the id of the rendezvous that it serves, or why it serves none.
#pragma once

#include <string>

#include "bootstrap/rendezvous/unique_id.hpp"

namespace npushmem::launcher {

// "i" and the id in hex digits, or "f" and the message in hex digits, cut to what fits.
std::string encode_start_message(const Result<rendezvous::UniqueId>& served);
// Code::aborted with rank 0's message; Code::protocol for text that is no start message.
Result<rendezvous::UniqueId> decode_start_message(const std::string& message);

}  // namespace npushmem::launcher
