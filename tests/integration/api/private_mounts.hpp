// A mount namespace of its own, in which tests fill or watch whole file systems without anybody noticing. Needs the
// right to mount.
#pragma once

#include <string>
#include <vector>

#include "core/tools/run/fd.hpp"

namespace npushmem::api_test {

class PrivateMounts {
public:
    struct Mount {
        std::string folder;   // exists
        std::string options;  // of tmpfs: "size=1m"
    };
    // `kept`: a folder that can be used inside although a mount covers it.
    explicit PrivateMounts(const std::vector<Mount>& mounts, const std::string& kept = "");
    PrivateMounts(const PrivateMounts&) = delete;
    PrivateMounts& operator=(const PrivateMounts&) = delete;
    ~PrivateMounts();

    // Why there is none; empty when there is.
    [[nodiscard]] const std::string& why_not() const { return why_not_; }
    // Puts the calling process, of one thread, inside.
    [[nodiscard]] bool enter() const;
    // The folder as seen from outside.
    [[nodiscard]] std::string seen_from_outside(const std::string& folder) const;

private:
    int holder_ = -1;  // a process that does nothing but stay inside
    run::Fd space_;
    std::string why_not_;
};

}  // namespace npushmem::api_test
