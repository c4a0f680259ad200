// What UCX's codes are to the runtime and to people.
#pragma once

#include <ucs/type/status.h>

#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem::ucx {

// What a status means for whoever called.
Code code_of_status(ucs_status_t status);
std::string text_of(ucs_status_t status);
// `what`: the call that has failed.
Status failure(const char* what, ucs_status_t status);

}  // namespace npushmem::ucx
