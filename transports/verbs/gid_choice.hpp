// Which of a port's addresses to use, and how it is written for people.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>

#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::verbs {

// "::ffff:10.77.0.1" and the like.
std::string text_of(const ibv_gid& gid);
// For people: "10.77.0.1" of an IPv4 address.
std::string short_text_of(const ibv_gid& gid);
// Is the address good within its link only, and the same on every link?
bool is_link_local(const ibv_gid& gid);
// "3: RoCE v2 ::ffff:10.77.0.1".
std::string text_of(const ibv_gid_entry& entry);

// `table`: the entries of the port. `ethernet`: it speaks RoCE, otherwise InfiniBand. The error lists the table and
// says which variable to change.
Result<ibv_gid_entry> choose_gid(std::span<const ibv_gid_entry> table, bool ethernet, const VerbsSettings& settings);

}  // namespace npushmem::verbs
