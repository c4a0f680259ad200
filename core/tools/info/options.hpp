// The command line of npushmem-info.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace npushmem::info {

struct Options {
    bool variables = false;
    bool plugins = false;
    bool topology = false;
    bool barriers = false;
    bool version = false;
    int pes = 8;
    int nodes = 1;
    std::string save;  // file for the machine; empty: none
    std::string draw;  // file for the drawing; empty: none
};

// Instead of a report: help, or a mistake with status 2.
struct EarlyExit {
    int status = 0;
    std::string text;
};

// `arguments` without the program's name.
std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments);

}  // namespace npushmem::info
