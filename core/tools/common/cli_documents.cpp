// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/common/cli_documents.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>

#include "core/base/parse.hpp"
#include "core/base/streams.hpp"
#include "core/base/version.hpp"

namespace npushmem {
namespace {

// Escapes what roff would interpret or replace by a typographic character. The result may begin a line.
std::string roff(std::string_view text) {
    std::string out;
    bool line_begins = true;
    for (const char c : text) {
        if (line_begins && (c == '.' || c == '\'')) out += "\\&";
        switch (c) {
            case '\\': out += "\\e"; break;
            case '-': out += "\\-"; break;
            case '\'': out += "\\(aq"; break;
            case '`': out += "\\(ga"; break;
            case '^': out += "\\(ha"; break;
            case '~': out += "\\(ti"; break;
            default: out += c;
        }
        line_begins = c == '\n';
    }
    return out;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff(text)); }

std::string sentence(std::string text) {
    if (!text.empty() && text.back() != '.') text += '.';
    return text;
}

std::string section(std::string_view title, const std::string& body) {
    return body.empty() ? "" : fmt::format(".SH {}\n{}", title, body);
}

std::string entries(const std::vector<DocumentEntry>& all) {
    std::string out;
    for (const auto& entry : all) out += man_entry(entry.term, entry.text);
    return out;
}

std::string example_lines(const std::vector<DocumentEntry>& examples) {
    std::string out;
    for (const auto& example : examples)
        out += fmt::format("{}.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", man_paragraphs(example.text), roff(example.term));
    return out;
}

// The value of an option, out of CLI11's type name: a placeholder, then the validators, such as "TEXT:{a,b}".
struct OptionValue {
    std::string placeholder;
    std::vector<std::string> choices;
    std::string accepted;  // a sentence; empty: nothing to add
};

std::string accepted_by(const std::string& validator) {
    const auto bracket = validator.find(" in [");
    const auto dash = validator.find(" - ");
    if (bracket != std::string::npos && dash != std::string::npos && validator.back() == ']') {
        const auto first = bracket + 5;
        return fmt::format("From {} to {}", validator.substr(first, dash - first),
                           validator.substr(dash + 3, validator.size() - dash - 4));
    }
    return validator == "POSITIVE" ? "At least 1" : fmt::format("Accepts: {}", validator);
}

OptionValue value_of(const CLI::Option& option) {
    OptionValue value;
    if (option.get_items_expected_max() == 0) return value;
    bool first = true;
    for (const auto& word : split(option.get_type_name(), ':')) {
        const std::string part(word);
        if (part.size() > 2 && part.front() == '{' && part.back() == '}') {
            for (const auto& choice : split(std::string_view(part).substr(1, part.size() - 2), ','))
                value.choices.emplace_back(choice);
            if (std::any_of(value.choices.begin(), value.choices.end(), [&](const std::string& choice) {
                    return option.get_description().find(choice) == std::string::npos;
                }))
                value.accepted = fmt::format("One of: {}", fmt::join(value.choices, ", "));
        } else if (first) {
            value.placeholder = part;
        } else if (!part.empty()) {
            value.accepted = accepted_by(part);
        }
        first = false;
    }
    if (value.placeholder.empty()) value.placeholder = "VALUE";
    return value;
}

std::vector<std::string> names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const auto& name : option.get_snames()) names.push_back("-" + name);
    for (const auto& name : option.get_lnames()) names.push_back("--" + name);
    return names;
}

// Options and operands that are not hidden.
std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
    return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::vector<const CLI::App*> shown_subcommands(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string explanation_of(const CLI::Option& option, const OptionValue& value) {
    std::string text = sentence(option.get_description());
    if (!value.accepted.empty()) text += " " + sentence(value.accepted);
    if (!option.get_default_str().empty()) text += fmt::format(" Default: {}.", option.get_default_str());
    if (option.get_required()) text += " Required.";
    std::vector<std::string> excluded;
    for (const auto* other : option.get_excludes()) excluded.push_back(names_of(*other).back());
    std::sort(excluded.begin(), excluded.end());  // the set's order is that of addresses
    if (!excluded.empty()) text += fmt::format(" Not together with {}.", fmt::join(excluded, ", "));
    return text;
}

std::string option_entry(const CLI::Option& option) {
    const OptionValue value = value_of(option);
    std::string names;
    for (const auto& name : names_of(option)) names += (names.empty() ? "" : ", ") + bold(name);
    if (names.empty())
        names = italic(option.get_name(true));
    else if (!value.placeholder.empty())
        names += " " + italic(value.placeholder);
    return fmt::format(".TP\n{}\n{}\n", names, roff(explanation_of(option, value)));
}

std::string option_entries(const CLI::App& app, bool with_help) {
    std::string out;
    for (const auto* option : shown_options(app))
        if (with_help || option != app.get_help_ptr()) out += option_entry(*option);
    return out;
}

std::string subcommand_sections(const CLI::App& app) {
    std::string out;
    std::map<std::string, std::string> first_with;  // the first subcommand, by its options
    for (const auto* command : shown_subcommands(app)) {
        out +=
            fmt::format(".SS {}\n{}", roff(command->get_name()), man_paragraphs(sentence(command->get_description())));
        const std::string options = option_entries(*command, false);
        const auto known = first_with.emplace(options, command->get_name());
        if (options.empty() || known.second)
            out += options;
        else
            out += fmt::format(".PP\nOptions: those of {}.\n", bold(known.first->second));
    }
    return out;
}

std::string synopsis(const CLI::App& app, const ManText& text) {
    const std::string command = shown_subcommands(app).empty() ? "" : " " + italic("subcommand");
    return fmt::format("{}{} [{}]{}{}\n", bold(app.get_name()), command, italic("options"),
                       text.operands.empty() ? "" : " ", roff(text.operands));
}

}  // namespace

std::string man_head(std::string_view name, int section_number, std::string_view purpose) {
    std::string title = roff(name);
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return fmt::format(".TH \"{}\" {} \"\" \"npushmem {}.{}.{}\" \"npushmem\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n",
                       title, section_number, library_version.major, library_version.minor, library_version.patch,
                       roff(name), roff(purpose));
}

std::string man_paragraphs(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto end = std::min(text.find("\n\n"), text.size());
        out += fmt::format(".PP\n{}\n", roff(text.substr(0, end)));
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return out;
}

std::string man_entry(std::string_view term, std::string_view text) {
    return fmt::format(".TP\n{}\n{}\n", bold(term), roff(text));
}

std::string man_page(const CLI::App& app, const ManText& text) {
    return man_head(app.get_name(), 1, text.purpose) + section("SYNOPSIS", synopsis(app, text)) +
           section("DESCRIPTION", man_paragraphs(text.description)) + section("OPTIONS", option_entries(app, true)) +
           section("SUBCOMMANDS", subcommand_sections(app)) + section("EXIT STATUS", entries(text.exit_status)) +
           section("ENVIRONMENT", entries(text.environment)) + section("EXAMPLES", example_lines(text.examples)) +
           section("SEE ALSO", man_paragraphs(text.see_also));
}

namespace {

// The cases of one (sub)command in the two tables of the script.
void add_cases(const CLI::App& app, const std::string& command, std::string& options, std::string& values) {
    std::vector<std::string> all;
    for (const auto* option : shown_options(app)) {
        const auto names = names_of(*option);
        all.insert(all.end(), names.begin(), names.end());
        if (names.empty() || option->get_items_expected_max() == 0) continue;
        values +=
            fmt::format("    '{}:{}') echo '{}' ;;\n", command, fmt::join(names, fmt::format("' | '{}:", command)),
                        fmt::join(value_of(*option).choices, " "));
    }
    options += fmt::format("    '{}') echo '{}' ;;\n", command, fmt::join(all, " "));
}

// BEFORE handles an operand before the current word, CURRENT the current word where it is an operand.
constexpr std::string_view completion_script =
    R"sh(# Completion of @PROGRAM@ for bash. Generated by: @PROGRAM@ --print-completion

# Prints the options of a subcommand; '' is the program itself.
@PREFIX@_options() {
    case $1 in
@OPTIONS@    esac
}

# Prints the values of an option of a subcommand, if they are known; fails if the option has no value.
@PREFIX@_values() {
    case $1:$2 in
@VALUES@    *) return 1 ;;
    esac
}

@PREFIX@() {
    local word=${COMP_WORDS[COMP_CWORD]} command='' option='' at
    COMPREPLY=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ -n $option ]]; then # its value; bash splits --option=value at the sign
            [[ ${COMP_WORDS[at]} == = ]] || option=''
        elif [[ ${COMP_WORDS[at]} == -* ]]; then
            @PREFIX@_values "$command" "${COMP_WORDS[at]}" >/dev/null && option=${COMP_WORDS[at]}
        else
            @BEFORE@
        fi
    done
    if [[ -n $option ]]; then
        [[ $word != = ]] || word=''
        mapfile -t COMPREPLY < <(compgen -W "$(@PREFIX@_values "$command" "$option")" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(@PREFIX@_options "$command")" -- "$word")
    else
        @CURRENT@
    fi
}
complete -o default -F @PREFIX@ @PROGRAM@
)sh";

void replace_all(std::string& text, std::string_view mark, const std::string& value) {
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
        text.replace(at, mark.size(), value);
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
    std::string options;
    std::string values;
    add_cases(app, "", options, values);
    std::vector<std::string> commands;
    for (const auto* command : shown_subcommands(app)) {
        add_cases(*command, command->get_name(), options, values);
        commands.push_back(command->get_name());
    }
    std::string prefix = "_" + app.get_name();
    std::replace(prefix.begin(), prefix.end(), '-', '_');
    // _command_offset belongs to the package bash-completion and completes another command line.
    const std::string other_command = "! declare -F _command_offset >/dev/null || _command_offset \"$at\"";
    std::string before = ":";
    std::string current = ":";
    if (app.get_prefix_command()) {
        before = other_command + "\n            return";
        current = other_command;
    } else if (!commands.empty()) {
        before = "[[ -n $command ]] || command=${COMP_WORDS[at]}";
        current = fmt::format("[[ -n $command ]] || mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")",
                              fmt::join(commands, " "));
    }
    std::string script(completion_script);
    replace_all(script, "@PREFIX@", prefix);
    replace_all(script, "@PROGRAM@", app.get_name());
    replace_all(script, "@OPTIONS@", options);
    replace_all(script, "@VALUES@", values);
    replace_all(script, "@BEFORE@", before);
    replace_all(script, "@CURRENT@", current);
    return script;
}

std::optional<std::string> requested_document(const CLI::App& app, const ManText& text,
                                              std::span<const std::string> arguments) {
    if (arguments.size() != 1) return std::nullopt;
    if (arguments.front() == "--print-man") return man_page(app, text);
    if (arguments.front() == "--print-completion") return bash_completion(app);
    return std::nullopt;
}

bool print_requested_document(const CLI::App& app, const ManText& text, int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto document = requested_document(app, text, arguments);
    if (document) write_output(*document);
    return document.has_value();
}

}  // namespace npushmem
