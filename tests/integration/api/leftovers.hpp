// SPDX-License-Identifier: BSD-3-Clause
// Files that a job leaves behind: new entries with the library's name.
#pragma once

#include <set>
#include <string>

namespace npushmem::api_test {

class Leftovers {
public:
    // Records the present entries.
    Leftovers() : before_(entries()) {}
    // New entries that stay, separated by blanks. Only names of npushmem count, since other programs run at the same
    // time. Other tests get time to remove their entries.
    [[nodiscard]] std::string found() const;

private:
    static std::set<std::string> entries();
    [[nodiscard]] std::string new_entries() const;

    std::set<std::string> before_;
};

}  // namespace npushmem::api_test
