// SPDX-License-Identifier: BSD-3-Clause
// The selections of tests/transport-selections.cmake, for tests that run jobs over each of them.
#pragma once

#include <cctype>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace npushmem::api_test {

// A transport that does not map memory serves each PE itself.
inline std::vector<std::string> unmapped_self_selections() {
    std::istringstream words(API_TEST_UNMAPPED_SELF);
    return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

// The selection in a form that a test name allows.
inline std::string name_of_selection(std::string selection) {
    for (char& letter : selection)
        if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
    return selection;
}

}  // namespace npushmem::api_test
