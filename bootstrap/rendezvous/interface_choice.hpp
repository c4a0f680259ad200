// Which network interface's address to use: a pure function of the list of interfaces and the user's wish.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/rendezvous/address.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// One address of one interface.
struct Interface {
    std::string name;
    Address address;
    bool up = true;
};

// `pattern` as users of NCCL know it: names separated by commas, each matching interfaces that begin with it; a leading
// "=" demands whole names, a leading "^" takes all but those ("^=" for both). Empty: all.
// `family` none: IPv4 first. Of what remains the first is taken, in this preference: ordinary interfaces, bridges and
// the like of containers, link-local addresses, loopback. Code::config, with the list, when nothing remains.
Result<Address> choose_interface(const std::vector<Interface>& interfaces, const std::string& pattern, Family family);

// Those of this machine.
Result<std::vector<Interface>> list_interfaces();

}  // namespace npushmem::rendezvous
