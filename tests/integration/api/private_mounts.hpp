// SPDX-License-Identifier: BSD-3-Clause
// A private mount namespace, in which tests fill or observe file systems without effect on others. Needs the right to
// mount.
#pragma once

#include <string>
#include <vector>

#include "core/base/poller.hpp"

namespace npushmem::api_test {

class PrivateMounts {
public:
    struct Mount {
        std::string folder;   // exists
        std::string options;  // of tmpfs: "size=1m"
    };
    // `kept`: a folder that stays accessible inside although a mount covers it.
    explicit PrivateMounts(const std::vector<Mount>& mounts, const std::string& kept = "");
    PrivateMounts(const PrivateMounts&) = delete;
    PrivateMounts& operator=(const PrivateMounts&) = delete;
    ~PrivateMounts();

    // The reason for a missing namespace; empty on success.
    [[nodiscard]] const std::string& why_not() const { return why_not_; }
    // Moves the calling process, which has one thread, into the namespace.
    [[nodiscard]] bool enter() const;
    // The folder as seen from outside.
    [[nodiscard]] std::string seen_from_outside(const std::string& folder) const;

private:
    int holder_ = -1;  // a process that keeps the namespace alive
    FileDescriptor space_;
    std::string why_not_;
};

}  // namespace npushmem::api_test
