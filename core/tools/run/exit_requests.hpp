// What PEs tell the launcher: lines on a pipe whose writing end every PE inherits.
//     exit <pe> <status>     npushmem_global_exit(status) was called
//     exit <pe> <status> shmem    the same, by its name in OpenSHMEM
//     failed <pe> <status>   the library cannot serve the PE any more; it has said why
//     wake                   a record was appended to the log of core/base/launcher_channel.hpp
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npushmem::run {

struct ExitRequest {
    int pe = -1;  // -1: it does not know
    int status = 0;
    bool failed = false;
    bool openshmem = false;  // the program uses the names of OpenSHMEM

    friend bool operator==(const ExitRequest&, const ExitRequest&) = default;
};

class ExitRequests {
public:
    // Complete lines that have come; what is no request is dropped, for any program may write into a descriptor that it
    // inherited. Bytes of an unfinished line are kept, up to a line's longest length.
    std::vector<ExitRequest> take(std::string_view bytes);

private:
    static constexpr std::size_t longest_line = 64;

    std::string rest_;
};

std::optional<ExitRequest> parse_exit_request(std::string_view line);
// The line without its end, as the PE wrote it.
std::string line_of(const ExitRequest& request);

}  // namespace npushmem::run
