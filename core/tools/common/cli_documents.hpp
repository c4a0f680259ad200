// SPDX-License-Identifier: BSD-3-Clause
// Documents that are made from a program's table of options, so that they list the options that the program accepts: a
// man page, and the completion for bash. The build runs each program with --print-man and with --print-completion.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace npushmem {

// A term and its explanation: an exit status and its meaning, a variable and its effect, a command and its purpose.
struct DocumentEntry {
    std::string_view term;
    std::string_view text;
};

// The parts of a man page that the table of options does not contain. Texts are plain; a blank line separates
// paragraphs. Empty parts are left out.
struct ManText {
    std::string_view purpose;   // follows the name: a phrase without a capital letter and without a full stop
    std::string_view operands;  // in the synopsis, after the options, such as "[--] program [arguments]"
    std::string_view description;
    std::vector<DocumentEntry> exit_status;
    std::vector<DocumentEntry> environment;
    std::vector<DocumentEntry> examples;  // term: the command
    std::string_view see_also;            // such as "npushmem-info(1), npushmem(7)"
};

// Returns the man page of section 1. `app` has a name. Options without a group are hidden and left out, as in the help.
// A subcommand whose options are those of an earlier one refers to it.
std::string man_page(const CLI::App& app, const ManText& text);

// Returns a script for bash that completes options, subcommands, and values that are one of a set. Every other word is
// completed as a file name, or as a command and its arguments where the program runs another one (prefix_command).
std::string bash_completion(const CLI::App& app);

// Returns the document that `arguments` (without the program's name) request: --print-man or --print-completion as the
// only argument. Both are for the build and not in the help.
std::optional<std::string> requested_document(const CLI::App& app, const ManText& text,
                                              std::span<const std::string> arguments);
// Writes the requested document to standard output; false if none is requested. `argc` and `argv` as of main.
bool print_requested_document(const CLI::App& app, const ManText& text, int argc, char** argv);

// For pages that are not about a program.

// The title and the section NAME.
std::string man_head(std::string_view name, int section, std::string_view purpose);
// Plain text as roff: special characters are escaped, a blank line begins a paragraph.
std::string man_paragraphs(std::string_view text);
// An indented explanation below a bold term.
std::string man_entry(std::string_view term, std::string_view text);

}  // namespace npushmem
