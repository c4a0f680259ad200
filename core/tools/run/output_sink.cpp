#include "core/tools/run/output_sink.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string_view>

namespace npushmem::run {

OutputSink::OutputSink(int descriptor) : shared_(descriptor) {
    struct stat facts {};
    if (::fstat(descriptor, &facts) != 0) return;
    socket_ = S_ISSOCK(facts.st_mode);
    if (!S_ISFIFO(facts.st_mode) && ::isatty(descriptor) == 0) return;
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    own_ = Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

namespace {

// Whole lines, as many as a pipe takes without another writer's bytes between them.
std::size_t piece_of(std::string_view text) {
    const auto last = text.size() > PIPE_BUF ? text.rfind('\n', PIPE_BUF - 1) : std::string_view::npos;
    return last == std::string_view::npos ? text.size() : last + 1;
}

}  // namespace

void OutputSink::flush() {
    std::size_t done = 0;
    while (done < waiting_.size() && !broken()) {
        const char* from = waiting_.data() + done;
        const std::size_t bytes = piece_of(std::string_view(waiting_).substr(done));
        const ssize_t written =
            socket_ ? ::send(shared_, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd(), from, bytes);
        if (written >= 0)
            done += static_cast<std::size_t>(written);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else if (errno != EINTR)
            error_ = errno;
    }
    waiting_.erase(0, broken() ? waiting_.size() : done);
}

}  // namespace npushmem::run
