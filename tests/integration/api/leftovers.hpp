// What a job could leave behind in the file system: new entries that bear the library's name.
#pragma once

#include <set>
#include <string>

namespace npushmem::api_test {

class Leftovers {
public:
    // Remembers what is there now.
    Leftovers() : before_(entries()) {}
    // The new ones that stay, separated by blanks. Other programs may run beside the test: only names count that a part
    // of npushmem would give, and other tests that use such names get time to remove theirs.
    [[nodiscard]] std::string found() const;

private:
    static std::set<std::string> entries();
    [[nodiscard]] std::string new_entries() const;

    std::set<std::string> before_;
};

}  // namespace npushmem::api_test
