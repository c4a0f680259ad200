// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/report/report_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace npushmem::npu::check {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Finding some_finding() {
    Finding finding;
    finding.hazard = Hazard::write_race;
    finding.kernel = "this launch";
    finding.here = {1, 2, Pipe::scalar, "store", SourceLocation::current()};
    finding.detail = "writes <the same> bytes";
    return finding;
}

std::string contents_of(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(ReportFiles, AcceptThreeEndingsAndStandardError) {
    for (const char* path : {"", "stderr", "a.svg", "folder/a.txt", "a.b.json"})
        EXPECT_TRUE(ReportFiles::validate(path).ok()) << path;
    for (const char* path : {"a", ".svg", "a.png", "stdout", "a.svg/"}) {
        const Status status = ReportFiles::validate(path);
        EXPECT_EQ(status.code(), Code::config) << path;
        EXPECT_THAT(status.message(), HasSubstr("expected a path that ends in .svg, .txt or .json, or stderr"));
    }
}

TEST(ReportFiles, WriteOneFileForEachFinding) {
    const std::string folder = testing::TempDir() + "report_files/";
    std::filesystem::create_directories(folder);
    const auto written = [&](const char* name) {
        ReportFiles reports(folder + name, 3);
        static_cast<void>(reports.write(some_finding()));
        return reports.write(some_finding());
    };
    EXPECT_EQ(written("race.svg"), "\n  report: " + folder + "race.pe3.2.svg");
    EXPECT_EQ(written("race.txt"), "\n  report: " + folder + "race.pe3.2.txt");
    EXPECT_EQ(written("race.json"), "\n  report: " + folder + "race.pe3.2.json");
    EXPECT_EQ(contents_of(folder + "race.pe3.1.svg"), some_finding().svg());
    EXPECT_EQ(contents_of(folder + "race.pe3.2.txt"), some_finding().diagram());
    EXPECT_EQ(contents_of(folder + "race.pe3.2.json"), some_finding().json());
    EXPECT_THAT(contents_of(folder + "race.pe3.1.svg"), StartsWith("<svg "));
    std::filesystem::remove_all(folder);
}

TEST(ReportFiles, ReportAFailedWriteAndStopAtTheLimit) {
    ReportFiles reports("/nowhere/race.svg", 0);
    for (int i = 1; i <= ReportFiles::max_files; ++i)
        EXPECT_EQ(reports.write(some_finding()), "\n  the report /nowhere/race.pe0." + std::to_string(i) +
                                                     ".svg cannot be written: No such file or directory");
    EXPECT_THAT(reports.write(some_finding()), IsEmpty());
}

TEST(ReportFiles, PrintTheDiagramOnStandardError) {
    ReportFiles reports("stderr", 0);
    testing::internal::CaptureStderr();
    EXPECT_THAT(reports.write(some_finding()), IsEmpty());
    EXPECT_EQ(testing::internal::GetCapturedStderr(), some_finding().diagram());
}

}  // namespace
}  // namespace npushmem::npu::check
