// SPDX-License-Identifier: BSD-3-Clause
// A host for plugins under test: reads variables from a map and stores log lines.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "npushmem/plugin/abi.h"

namespace npushmem::fakes {

class FakeHost {
public:
    struct Line {
        std::int32_t level;
        std::string subsystem;
        std::string text;
    };

    FakeHost() : table_{sizeof table_, 1, 0, this, log, config} {}
    FakeHost(const FakeHost&) = delete;
    FakeHost& operator=(const FakeHost&) = delete;

    // Sets variables, named without NPUSHMEM_, before the plugin reads them.
    void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
    [[nodiscard]] const npushmem_host& table() const { return table_; }
    [[nodiscard]] std::vector<Line> lines() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message) {
        auto& self = *static_cast<FakeHost*>(context);
        const std::lock_guard lock(self.mutex_);
        self.lines_.push_back({level, subsystem, message});
    }
    static const char* config(void* context, const char* name) {
        const auto& values = static_cast<FakeHost*>(context)->values_;
        const auto found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    }

    std::map<std::string, std::string> values_;
    mutable std::mutex mutex_;
    std::vector<Line> lines_;
    npushmem_host table_;
};

}  // namespace npushmem::fakes
