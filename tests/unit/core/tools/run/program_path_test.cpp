#include "core/tools/run/program_path.hpp"

#include <gmock/gmock.h>

#include "core/tools/run/exit_codes.hpp"

namespace npushmem::run {
namespace {

using ::testing::HasSubstr;

ProgramError refused(const std::string& name, const std::string& path) {
    auto found = find_program(name, path);
    if (std::holds_alternative<std::string>(found)) return {0, "found " + std::get<std::string>(found)};
    return std::get<ProgramError>(found);
}

TEST(ProgramPath, SearchesInOrder) {
    EXPECT_EQ(std::get<std::string>(find_program("sh", "/nonexistent:/bin:/usr/bin")), "/bin/sh");
    EXPECT_EQ(std::get<std::string>(find_program("/bin/sh", "")), "/bin/sh");
}

TEST(ProgramPath, MissingProgramIs127) {
    EXPECT_EQ(refused("no-such-program", "/bin").status, exit_not_found);
    EXPECT_THAT(refused("no-such-program", "/bin").message, HasSubstr("'no-such-program' was not found in PATH"));
    EXPECT_EQ(refused("/no/such/program", "/bin").status, exit_not_found);
    EXPECT_THAT(refused("/no/such/program", "/bin").message, HasSubstr("/no/such/program"));
    EXPECT_EQ(refused("", "/bin").status, exit_not_found);
    EXPECT_EQ(refused("sh", "").status, exit_not_found);
}

TEST(ProgramPath, WhatCannotRunIs126) {
    EXPECT_EQ(refused("/usr/", "").status, exit_not_executable);
    EXPECT_THAT(refused("/usr/", "").message, HasSubstr("is a directory"));
    EXPECT_EQ(refused("/proc/self/maps", "").status, exit_not_executable);
    EXPECT_EQ(refused("bin", "/usr").status, exit_not_found);  // a directory in PATH is no candidate
}

}  // namespace
}  // namespace npushmem::run
