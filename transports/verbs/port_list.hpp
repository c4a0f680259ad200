// The RDMA ports of this machine, as the NIC assignment wants to know them.
#pragma once

#include <string>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "transports/verbs/verbs_library.hpp"

namespace npushmem::verbs {

// "No such device (19)": what a number in errno means.
std::string text_of_error(int error);

// In the order of the library; a device that cannot be opened is left out, and `notes` says why. Nothing stays open.
Result<std::vector<npushmem_device>> list_ports(VerbsLibrary& library, std::vector<std::string>& notes);

// Bits per second, as active_width and active_speed of a port encode them; 0: unknown.
std::uint64_t rate_of(std::uint8_t width, std::uint8_t speed);

// "rxe0:1"
std::string name_of(const npushmem_device& port);

}  // namespace npushmem::verbs
