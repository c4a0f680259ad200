#include "transports/verbs/process_mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>

namespace npushmem::verbs {
namespace {

constexpr std::size_t longest_line = 8192;  // a path may have 4096 bytes, and escapes within

std::optional<ProcessMapping> parsed(const char* line) {
    ProcessMapping out;
    std::array<char, 5> rights{};
    std::uint64_t inode = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNu64, &out.pages.begin, &out.pages.end,
                    rights.data(), &inode) != 4)
        return std::nullopt;
    out.private_anonymous = rights[3] == 'p' && inode == 0;
    return out;
}

// False: `each` has seen enough. Leaves the line that is not complete.
bool take_lines(std::array<char, longest_line>& text, std::size_t& used,
                const std::function<bool(const ProcessMapping&)>& each) {
    char* line = text.data();
    char* const end = line + used;
    for (char* stop = line; (stop = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line))));
         line = stop + 1) {
        *stop = '\0';
        if (const auto mapping = parsed(line); mapping && !each(*mapping)) return false;
    }
    used = static_cast<std::size_t>(end - line);
    std::memmove(text.data(), line, used);
    return true;
}

}  // namespace

void for_each_mapping(const std::function<bool(const ProcessMapping&)>& each) {
    const int list = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (list < 0) return;
    std::array<char, longest_line> text;
    std::size_t used = 0;
    for (ssize_t got = 1; got > 0 && used < text.size();) {
        got = ::read(list, text.data() + used, text.size() - used);
        if (got <= 0) break;
        used += static_cast<std::size_t>(got);
        if (!take_lines(text, used, each)) break;
    }
    ::close(list);
}

bool is_private_anonymous(const AddressRange& pages) {
    std::uintptr_t reached = pages.begin;
    for_each_mapping([&](const ProcessMapping& mapping) {
        if (mapping.pages.end <= reached) return true;
        if (mapping.pages.begin > reached || !mapping.private_anonymous) return false;
        reached = mapping.pages.end;
        return reached < pages.end;
    });
    return reached >= pages.end;
}

}  // namespace npushmem::verbs
