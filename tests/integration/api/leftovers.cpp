// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/api/leftovers.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

namespace npushmem::api_test {

std::set<std::string> Leftovers::entries() {
    std::set<std::string> out;
    for (const char* folder : {"/dev/shm", "/tmp"}) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
            if (entry.path().filename().string().find("npushmem") != std::string::npos)
                out.insert(entry.path().string());
    }
    return out;
}

std::string Leftovers::new_entries() const {
    std::string out;
    for (const auto& entry : entries())
        if (!before_.contains(entry)) out += entry + " ";
    return out;
}

std::string Leftovers::found() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    std::string out = new_entries();
    while (!out.empty() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        out = new_entries();
    }
    return out;
}

}  // namespace npushmem::api_test
