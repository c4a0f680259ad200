#include "core/base/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace npushmem {
namespace {

Status failed() { return {Code::system, std::strerror(errno)}; }

Result<std::string> read_all(int fd) {
    std::string out;
    for (std::array<char, 65536> piece;;) {
        const ssize_t got = ::read(fd, piece.data(), piece.size());
        if (got == 0) return out;
        if (got < 0 && errno != EINTR) return failed();
        if (got > 0) out.append(piece.data(), static_cast<std::size_t>(got));
    }
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed();
    auto content = read_all(fd);
    ::close(fd);
    return content;
}

}  // namespace npushmem
