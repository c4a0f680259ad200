// SPDX-License-Identifier: BSD-3-Clause
// The command line of npushmem-run as a value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace npushmem::run {

enum class MapBy { block, round_robin };
enum class Bind { automatic, none, core, hwthread, numa, share, device };

// The names on the command line.
std::string name_of(MapBy rule);
std::string name_of(Bind bind);

struct Variable {
    std::string name;
    std::string value;
};

// One structure, although it has many members: each is the value of one option on the command line, which the launcher
// hands down unchanged.
struct Options {
    int npes = 1;
    int nodes = 0;  // emulated hosts; 0: none are emulated
    MapBy map_by = MapBy::block;
    std::vector<Variable> exports;
    bool tag_output = false;
    Bind bind = Bind::automatic;
    std::optional<std::chrono::milliseconds> timeout;
    bool verbose = false;
    std::string npu_check;                // schedule of checked kernels; empty: as the environment says
    std::uint64_t npu_check_runs = 0;     // maximum number of runs of an exploration
    std::vector<std::string> hosts;       // empty: this one
    std::vector<std::string> rsh{"ssh"};  // words of the remote shell's command, before the host's name
    bool rsh_given = false;               // by the user
    bool local = false;                   // on this host only, also in an allocation of several
    std::string remote_run;               // npushmem-run on the other hosts
    bool agent_client = false;            // this process is an agent client
    int job_npes = 0;                     // above 0: this is the host agent of a job of so many PEs
    std::string record_mark;              // not empty: records go to standard error, in frames that begin so
    std::vector<std::string> command;     // never empty
};

// The launcher ends before it starts anything: help, version, or an error on the command line.
struct EarlyExit {
    int status = 0;
    std::string text;  // goes to standard output when status is 0, to standard error otherwise
};

// `arguments` without the launcher's own name. Options end at the first word that is not an option, or at "--".
std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments);

}  // namespace npushmem::run
