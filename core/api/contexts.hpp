// The contexts that programs have made.
#pragma once

#include "core/api/context.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

// May the context be used? Code::argument, with what it is instead.
Status check_context(const Context& context);

// Completes and ends those that were made from the team.
Status destroy_contexts_of(npushmem_team_t team);

// When the library ends: completes those that are left, while the PEs still meet; then ends them.
Status complete_contexts();
void destroy_contexts();

// In a child that a PE made by fork: without a lock, which a thread of the PE may have held, makes all handles name
// nothing.
void clear_contexts();

}  // namespace npushmem::api
