// SPDX-License-Identifier: BSD-3-Clause
#include "tests/corpus/table.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace npushmem::npu::corpus {
namespace {

// "<file>:<line>" of every marked line.
std::vector<std::string> marked_lines(std::string_view name) {
    std::vector<std::string> lines;
    const std::string mark = "// WRONG: " + std::string(name);
    for (const auto& entry : std::filesystem::directory_iterator(CORPUS_FOLDER)) {
        std::ifstream source(entry.path());
        std::string text;
        for (unsigned number = 1; std::getline(source, text); ++number)
            if (text.ends_with(mark))
                lines.push_back("/" + entry.path().filename().string() + ":" + std::to_string(number));
    }
    EXPECT_FALSE(lines.empty()) << "no line of the corpus has the comment " << mark;
    return lines;
}

bool names(std::string_view text, std::string_view line) {
    for (auto at = text.find(line); at != text.npos; at = text.find(line, at + 1)) {
        const std::size_t end = at + line.size();
        if (end == text.size() || std::isdigit(static_cast<unsigned char>(text[end])) == 0) return true;
    }
    return false;
}

bool has_word(std::string_view words, std::string_view word) {
    std::istringstream all{std::string(words)};
    for (std::string one; all >> one;)
        if (one == word) return true;
    return false;
}

std::string row_of(const Kernel& kernel, const Verdict& verdict) {
    const std::string caught = !verdict.caught ? "missed" : verdict.hazard.empty() ? "caught" : verdict.hazard;
    return id_of(kernel.hazard) + "\t" + kernel.name + "\t" + verdict.mode + "\t" + caught + "\t" +
           (verdict.line ? "line" : "-") + "\t" + (verdict.twin_is_clean ? "clean" : "REPORTED");
}

}  // namespace

bool is_missed(const Kernel& kernel, std::string_view mode) {
    const std::string_view kind = mode.substr(0, mode.find(':'));
    if (mode == "job:explore") return has_word(kernel.missed_by, mode);
    return has_word(kernel.missed_by, kind == "job" ? "jobs" : kind);
}

bool names_marked_line(std::string_view text, std::string_view name) {
    return std::ranges::any_of(marked_lines(name), [&](const std::string& line) { return names(text, line); });
}

bool names_marked_lines(std::string_view text, std::string_view name) {
    return std::ranges::all_of(marked_lines(name), [&](const std::string& line) { return names(text, line); });
}

void record(const Kernel& kernel, const std::vector<Verdict>& verdicts) {
    const char* const file = "corpus.tsv";
    std::fstream(file, std::ios::app).close();
    std::FILE* const locked = std::fopen(file, "r");
    ASSERT_NE(locked, nullptr);
    static_cast<void>(::flock(::fileno(locked), LOCK_EX));
    std::set<std::string> rows;
    for (const Verdict& verdict : verdicts) rows.insert(row_of(kernel, verdict));
    std::ifstream old(file);
    for (std::string row; std::getline(old, row);) {
        const bool replaced = std::ranges::any_of(verdicts, [&](const Verdict& verdict) {
            return row.find("\t" + std::string(kernel.name) + "\t" + verdict.mode + "\t") != row.npos;
        });
        if (!replaced) rows.insert(row);
    }
    std::ofstream table(file, std::ios::trunc);
    for (const std::string& row : rows) table << row << "\n";
    table.close();
    static_cast<void>(std::fclose(locked));  // with its lock
}

void PrintTo(const Kernel& kernel, std::ostream* out) { *out << kernel.name; }

void expect_found(const Kernel& kernel, const Verdict& verdict, bool any_hazard, const std::string& report) {
    EXPECT_TRUE(verdict.twin_is_clean) << verdict.mode << " reports the right kernel:\n" << report;
    if (is_missed(kernel, verdict.mode)) return;
    EXPECT_TRUE(verdict.caught) << verdict.mode << " finds nothing";
    EXPECT_TRUE(any_hazard || verdict.hazard == id_of(kernel.hazard)) << verdict.mode << ":\n" << report;
    EXPECT_TRUE(verdict.line) << verdict.mode << " does not name the marked lines:\n" << report;
    std::istringstream others(verdict.others);
    for (std::string other; others >> other;)
        EXPECT_TRUE(has_word(kernel.others, other)) << verdict.mode << " reports " << other << ", too:\n" << report;
}

}  // namespace npushmem::npu::corpus
