// What a process holds that a plugin could leave behind.
#pragma once

#include <filesystem>
#include <ostream>

namespace npushmem::contract {

struct ProcessFacts {
    long descriptors;
    long threads;

    static ProcessFacts now() { return {entries("/proc/self/fd"), entries("/proc/self/task")}; }
    // No more of either.
    friend bool operator<=(const ProcessFacts& a, const ProcessFacts& b) {
        return a.descriptors <= b.descriptors && a.threads <= b.threads;
    }
    friend std::ostream& operator<<(std::ostream& out, const ProcessFacts& facts) {
        return out << facts.descriptors << " descriptors, " << facts.threads << " threads";
    }

private:
    static long entries(const char* folder) {
        const std::filesystem::directory_iterator all(folder);
        return std::distance(begin(all), end(all));
    }
};

}  // namespace npushmem::contract
