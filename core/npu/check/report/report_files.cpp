// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/report/report_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/base/streams.hpp"

namespace npushmem::npu::check {
namespace {

constexpr std::string_view to_standard_error = "stderr";

std::string contents(const Finding& finding, std::string_view path) {
    if (path.ends_with(".svg")) return finding.svg();
    return path.ends_with(".json") ? finding.json() : finding.diagram();
}

}  // namespace

Status ReportFiles::validate(std::string_view path) {
    if (path.empty() || path == to_standard_error) return {};
    for (const std::string_view ending : {".svg", ".txt", ".json"})
        if (path.ends_with(ending) && path.size() > ending.size()) return {};
    return {Code::config, fmt::format("'{}': expected a path that ends in .svg, .txt or .json, or stderr", path)};
}

std::string ReportFiles::write(const Finding& finding) {
    const std::lock_guard lock(mutex_);
    if (path_.empty() || written_ == max_files) return {};
    ++written_;
    if (path_ == to_standard_error) {
        write_error(finding.diagram());
        return {};
    }
    const std::size_t ending = path_.rfind('.');
    const std::string file = fmt::format("{}.pe{}.{}{}", path_.substr(0, ending), pe_, written_, path_.substr(ending));
    errno = 0;
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << contents(finding, path_) << std::flush;
    if (out) return fmt::format("\n  report: {}", file);
    return fmt::format("\n  the report {} cannot be written: {}", file, std::generic_category().message(errno));
}

}  // namespace npushmem::npu::check
