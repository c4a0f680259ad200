#include "core/npu/source_line.hpp"

#include <fmt/format.h>

#include <string_view>

namespace npushmem::npu {
namespace {

// The folder in which `file`, whose path in the library is `path`, was built; empty when that is not known.
constexpr std::string_view folder_of(std::string_view file, std::string_view path) {
    return file.ends_with(path) ? file.substr(0, file.size() - path.size()) : std::string_view{};
}

}  // namespace

std::string text_of(const std::source_location& where) {
    if (where.line() == 0) return "the library";
    constexpr std::string_view built_in = folder_of(__FILE__, "core/npu/source_line.cpp");
    std::string_view file = where.file_name();
    const bool own = file.starts_with(built_in) && file.substr(built_in.size()).starts_with("core/");
    if (own) file.remove_prefix(built_in.size());
    return fmt::format("{}:{}", file, where.line());
}

}  // namespace npushmem::npu
