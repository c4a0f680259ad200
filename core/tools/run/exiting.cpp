#include "core/tools/run/exiting.hpp"

#include <cstdio>
#include <fstream>
#include <string>

namespace npushmem::run {
namespace {

constexpr unsigned exiting_flag = 0x4;  // PF_EXITING of the kernel, in the field `flags` of proc(5)

}  // namespace

// The name in the second field may hold blanks and brackets: fields count from its end.
bool is_exiting(std::string_view stat) {
    const auto name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) return false;
    const std::string after_name(stat.substr(name_end + 1));
    unsigned flags = 0;
    return std::sscanf(after_name.c_str(), " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & exiting_flag) != 0;
}

bool is_exiting(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    return std::getline(file, text) && is_exiting(text);
}

}  // namespace npushmem::run
