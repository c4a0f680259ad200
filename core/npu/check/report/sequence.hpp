// SPDX-License-Identifier: BSD-3-Clause
// The sequence diagram of a finding, before it is drawn: columns, rows in the order of time, and arrows between rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "npushmem/npu/hazard.hpp"

namespace npushmem::npu::check {

class Sequence {
public:
    struct Column {
        int pe;
        int core;
        std::optional<Pipe> pipe;  // if the columns are the pipes of one core
        std::string label;
    };
    struct Row {
        KernelEvent event;
        std::size_t column;
        std::string place;     // "file:line"
        bool accused = false;  // one of the two accesses
        bool landing = false;  // the event's write reaches memory here; the column is the memory's PE
    };
    // Ascending rows.
    struct Arrow {
        enum class Kind { cause, landing, missing };
        Kind kind;
        std::size_t from;
        std::size_t to;
    };

    // With at most `max_columns` columns: those of the accesses first, then those with the most events.
    Sequence(const Finding& finding, std::size_t max_columns);

    [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
    [[nodiscard]] const std::vector<Arrow>& arrows() const { return arrows_; }
    // Cores that have no column.
    [[nodiscard]] std::size_t hidden() const { return hidden_; }

private:
    [[nodiscard]] std::vector<KernelEvent> events_of(const Finding& finding);
    void make_columns(const std::vector<KernelEvent>& events, std::size_t max_columns);
    void make_rows(const std::vector<KernelEvent>& events);
    void make_arrows();
    // None: the core has no column.
    [[nodiscard]] std::optional<std::size_t> column_of(const KernelEvent& event) const;
    [[nodiscard]] std::optional<std::size_t> row_of(std::uint64_t number) const;
    // Whether an earlier row of the same column has the same cause.
    [[nodiscard]] bool is_shown(std::size_t row) const;
    // Whether the write reaches memory of another PE only after other rows.
    [[nodiscard]] bool lands_later(const KernelEvent& event, const std::vector<KernelEvent>& events) const;

    std::uint64_t here_ = 0;  // numbers of the two accesses
    std::optional<std::uint64_t> other_;
    std::vector<Column> columns_;
    std::vector<Row> rows_;
    std::vector<Arrow> arrows_;
    std::size_t hidden_ = 0;
};

// "no order", or what else is wrong between the two sides of a finding.
const char* missing_edge(Hazard hazard);
// "ring.cpp:12": a place without its folders.
std::string without_folders(const std::string& place);
// Lines of at most `columns` characters, broken at blanks. `text` has no characters beyond ASCII.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);
// What stands above a picture: the hazard and its detail; and below it: memory and advice.
std::string headline(const Finding& finding);
std::vector<std::string> remarks(const Finding& finding);

}  // namespace npushmem::npu::check
