// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/common/cli_documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A program with options of every kind, and two subcommands with equal options.
class CliDocuments : public ::testing::Test {
protected:
    CliDocuments() {
        app_.set_version_flag("-V,--version", "1.2.3");
        app_.add_option("-n,--number", number_, "How many")->check(CLI::Range(1, 9))->capture_default_str();
        app_.add_flag("-q,--quiet", quiet_, "Print less");
        app_.add_flag("--internal", quiet_, "Not for users")->group("");
        for (const char* name : {"first", "second"}) {
            auto* command = app_.add_subcommand(name, std::string("Do the ") + name + " thing");
            command->add_option("--mode", mode_, "How it is done")->check(CLI::IsMember({"direct", "chunked"}));
            command->add_option("--file", file_, "Where it goes")->type_name("FILE");
        }
    }

    static ManText text() {
        ManText text;
        text.purpose = "try what a page contains";
        text.description = "First paragraph: don't.\n\n.not a request";
        text.exit_status = {{"0", "good"}};
        text.environment = {{"NPUSHMEM_X", "is read"}};
        text.examples = {{"a-program first --mode direct", "Directly:"}};
        text.see_also = "npushmem(7)";
        return text;
    }

    int number_ = 4;
    bool quiet_ = false;
    std::string mode_;
    std::string file_;
    CLI::App app_{"Tries.", "a-program"};
};

TEST_F(CliDocuments, ThePageListsOptionsWithValuesAndDefaults) {
    const std::string page = man_page(app_, text());
    EXPECT_THAT(page, HasSubstr("\\fB\\-n\\fR, \\fB\\-\\-number\\fR \\fIINT\\fR\nHow many. From 1 to 9. Default: 4."));
    EXPECT_THAT(page, HasSubstr("\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nPrint less."));
    EXPECT_THAT(page, HasSubstr("How it is done. One of: direct, chunked."));
    EXPECT_THAT(page, HasSubstr("\\-\\-file\\fR \\fIFILE\\fR\n"));
}

TEST_F(CliDocuments, HiddenOptionsAreInNoDocument) {
    EXPECT_THAT(man_page(app_, text()), Not(HasSubstr("internal")));
    EXPECT_THAT(bash_completion(app_), Not(HasSubstr("internal")));
}

TEST_F(CliDocuments, EqualOptionsOfASubcommandAreListedOnce) {
    const std::string page = man_page(app_, text());
    EXPECT_EQ(page.find("How it is done"), page.rfind("How it is done"));
    EXPECT_THAT(page, HasSubstr(".SS second\n.PP\nDo the second thing.\n.PP\nOptions: those of \\fBfirst\\fR."));
}

TEST_F(CliDocuments, ThePageHasTheSectionsOfItsText) {
    const std::string page = man_page(app_, text());
    for (const char* title : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SUBCOMMANDS", "EXIT STATUS", "ENVIRONMENT",
                              "EXAMPLES", "SEE ALSO"})
        EXPECT_THAT(page, HasSubstr(std::string(".SH ") + title + "\n"));
    EXPECT_THAT(man_page(app_, ManText{}), AllOf(Not(HasSubstr(".SH EXAMPLES")), Not(HasSubstr(".SH ENVIRONMENT"))));
}

// A line that begins with a full stop or an apostrophe would be a request to roff.
TEST_F(CliDocuments, TextIsEscaped) {
    const std::string page = man_page(app_, text());
    EXPECT_THAT(page, HasSubstr("First paragraph: don\\(aqt.\n.PP\n\\&.not a request\n"));
    EXPECT_THAT(man_paragraphs("a\\b\n'c"), HasSubstr("a\\eb\n\\&\\(aqc"));
}

TEST_F(CliDocuments, TheCompletionListsOptionsSubcommandsAndChoices) {
    const std::string script = bash_completion(app_);
    EXPECT_THAT(script, HasSubstr("complete -o default -F _a_program a-program\n"));
    EXPECT_THAT(script, HasSubstr("'') echo '-h --help -V --version -n --number -q --quiet' ;;"));
    EXPECT_THAT(script, HasSubstr("'first:--mode') echo 'direct chunked' ;;"));
    EXPECT_THAT(script, HasSubstr("'second:--file') echo '' ;;"));
    EXPECT_THAT(script, HasSubstr("compgen -W 'first second'"));
    EXPECT_THAT(script, Not(HasSubstr("_command_offset")));
}

TEST_F(CliDocuments, AProgramThatRunsAnotherCompletesItsCommandLine) {
    CLI::App launcher{"Runs.", "launcher"};
    launcher.prefix_command();
    EXPECT_THAT(bash_completion(launcher), HasSubstr("_command_offset \"$at\""));
}

TEST_F(CliDocuments, ADocumentIsRequestedByTheOnlyArgument) {
    const auto requested = [&](const std::vector<std::string>& arguments) {
        return requested_document(app_, text(), arguments).value_or("none");
    };
    EXPECT_EQ(requested({"--print-man"}), man_page(app_, text()));
    EXPECT_EQ(requested({"--print-completion"}), bash_completion(app_));
    EXPECT_EQ(requested({}), "none");
    EXPECT_EQ(requested({"--print-man", "-n", "2"}), "none");
    EXPECT_EQ(requested({"program", "--print-man"}), "none");
}

}  // namespace
}  // namespace npushmem
