// SPDX-License-Identifier: BSD-3-Clause
// Pictures of the findings of one process, in files.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "npushmem/npu/hazard.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu::check {

// Thread rule: any thread.
class ReportFiles {
public:
    static constexpr int max_files = 16;

    // Writes nothing.
    ReportFiles() = default;
    ReportFiles(const ReportFiles&) = delete;
    ReportFiles& operator=(const ReportFiles&) = delete;

    // `path` ends in .svg, .txt or .json; "stderr" selects text on standard error; empty: no reports. Returns
    // Code::config for other paths.
    static Status validate(std::string_view path);
    // `path`: valid. The PE and a number are added to its name: "race.svg" becomes "race.pe0.1.svg".
    ReportFiles(std::string_view path, int pe) : path_(path), pe_(pe) {}

    // Writes the finding. Returns a line for the message of the launch: the file, or why it could not be written. Empty
    // when there are no reports, and after max_files of them.
    std::string write(const Finding& finding);

private:
    std::string path_;
    int pe_ = 0;
    std::mutex mutex_;
    int written_ = 0;
};

}  // namespace npushmem::npu::check
