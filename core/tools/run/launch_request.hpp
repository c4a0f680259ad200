// What npushmem-run sends to the host agent through its standard input: which PEs to start,
// how, and with what environment. Nothing of it is on a command line, where a shell would take it apart and everybody
// could read the job's id.
//
//     "npushmem-launch 3 <bytes of the body>\n"   then the body: texts, each ended by a NUL
//     folder, mark of records, first PE, step, count, PEs of the job, binding, tag, verbose, number of variables,
//     variables..., command...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tools/run/host_pes.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

struct LaunchRequest {
    std::string folder;
    std::string record_mark;  // as of Options
    HostPes pes;
    int npes = 0;
    Bind bind = Bind::automatic;
    bool tag_output = false;
    bool verbose = false;
    std::vector<std::string> environment;  // NAME=value
    std::vector<std::string> command;

    [[nodiscard]] std::string encode() const;
    // The body's length that the first line tells.
    static Result<std::size_t> body_bytes(std::string_view first_line);
    static Result<LaunchRequest> decode(std::string_view body);
};

}  // namespace npushmem::run
