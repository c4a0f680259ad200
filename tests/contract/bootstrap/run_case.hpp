// SPDX-License-Identifier: BSD-3-Clause
// A test of GoogleTest in a process of its own: the parent executes its own program again for the one test, with its
// own arguments, so that no thread or library state of the parent is there. Use it in TestBody():
//
//     report_case(is_case_process() ? <run the case here> : run_case_again(deadline));
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace npushmem::contract {

struct CaseResult {
    enum class Kind : unsigned char { passed = 'p', skipped = 's', failed = 'f' };

    Kind kind = Kind::failed;
    std::string text;  // the reason of a skip; the failures with their output
};

// The most output of one process that a failure quotes, in bytes. The end of the output is kept.
inline constexpr std::size_t max_quoted_bytes = 16 * 1024;

// A file without a name that receives the output of processes. Move-only; -1 if the system has no more descriptors.
class OutputFile {
public:
    OutputFile();
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    [[nodiscard]] int descriptor() const { return descriptor_; }
    // Returns the file's end, at most max_quoted_bytes.
    [[nodiscard]] std::string text() const;

private:
    int descriptor_;
};

// "exited with status 3", "was ended by signal 11 (Segmentation fault)"; `status` is that of waitpid.
std::string describe_end(int status);

// A value of --gtest_filter that matches this test: '?' stands for characters that have a meaning in filters.
std::string exact_filter(std::string name);

// Has a parent started this process for one case, or does NPUSHMEM_CONTRACT_IN_PROCESS=1 ask for no such processes?
bool is_case_process();
// Has a parent started this process for one case?
bool is_child_for_one_case();
// Executes this program again for the test that runs now, and waits at most `deadline`; then it kills the process.
CaseResult run_case_again(std::chrono::seconds deadline);
// Gives the result to GoogleTest, and to the parent if there is one. Call it last in the test.
void report_case(const CaseResult& result);

}  // namespace npushmem::contract
