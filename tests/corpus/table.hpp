// SPDX-License-Identifier: BSD-3-Clause
// The marked lines of the corpus, and the table of what each mode finds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {

// What one mode reports about a kernel and its twin.
struct Verdict {
    std::string mode;
    bool caught = false;         // the kernel with the mistake is reported
    std::string hazard{};        // the expected hazard if it is among those reported, otherwise the first one
    bool line = false;           // such reports name the marked lines
    std::string others{};        // other hazards that are reported
    bool twin_is_clean = false;  // nothing is reported about the kernel without the mistake
};

// Whether the kernel lists the mode, or all modes of its kind, as one that does not find the mistake.
bool is_missed(const Kernel& kernel, std::string_view mode);

// Whether the text names a line that is marked "WRONG: <name>", and whether it names all of them.
bool names_marked_line(std::string_view text, std::string_view name);
bool names_marked_lines(std::string_view text, std::string_view name);

// Replaces the rows of this kernel and these modes in the file corpus.tsv of the working directory, which all programs
// and processes of the corpus write.
void record(const Kernel& kernel, const std::vector<Verdict>& verdicts);

void PrintTo(const Kernel& kernel, std::ostream* out);

// Fails the running test unless the mistake is found, at the right line, and the twin is clean. `any_hazard`: the
// report may show another hazard than the expected one.
void expect_found(const Kernel& kernel, const Verdict& verdict, bool any_hazard, const std::string& report);

}  // namespace npushmem::npu::corpus
