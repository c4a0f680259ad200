// SPDX-License-Identifier: BSD-3-Clause
// Reports of a test's program to the test: lines "<pe> <word> <pid>" on the descriptor that RUN_TEST_REPORT
// names. Every process of a job holds that descriptor, so its reader sees the end of file when none of them is left.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace run_test {

inline std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "unset" : value;
}

inline void write_all(int fd, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
        if (count <= 0) std::_Exit(99);
        done += static_cast<std::size_t>(count);
    }
}

inline void report(const std::string& word) {
    write_all(std::atoi(variable("RUN_TEST_REPORT").c_str()),
              variable("NPUSHMEM_PE") + " " + word + " " + std::to_string(::getpid()) + "\n");
}

}  // namespace run_test
