// SPDX-License-Identifier: BSD-3-Clause
// The storm's own namespaces, the limits of a job, and the files and sockets that a job leaves.
#pragma once

#include <set>
#include <string>

#include "tests/stress/storm/fault.hpp"

namespace npushmem::storm {

// Gives the calling process private namespaces of mounts and of the network, an empty /dev/shm, and the loopback
// interface. Returns why not, empty on success.
std::string enter_private_namespaces();

// Puts the limit of the whole job on the calling process, which becomes the launcher. Returns why not, empty on
// success.
std::string limit_job(const Fault& fault);

// Sockets of the network namespace that listen or are connected.
std::set<std::string> present_sockets();
// Entries of /dev/shm and of the folder of temporary files.
std::set<std::string> present_files(const std::string& temporary);

}  // namespace npushmem::storm
