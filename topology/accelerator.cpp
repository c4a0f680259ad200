#include "topology/accelerator.hpp"

#include <algorithm>
#include <array>

namespace npushmem::topology {
namespace {

struct AcceleratorRow {
    std::uint16_t class_id;
    std::uint16_t vendor;  // 0: any
};

constexpr std::array<AcceleratorRow, 5> rows{{
    {0x1200, 0},       // processing accelerator
    {0x0b40, 0},       // co-processor
    {0x0302, 0x10de},  // 3D controller
    {0x0300, 0x10de},  // the same vendor's boards that also drive a screen
    {0x0380, 0x1002},  // display controller without a screen
}};

}  // namespace

bool is_accelerator(std::uint16_t class_id, std::uint16_t vendor) {
    return std::any_of(rows.begin(), rows.end(), [&](const AcceleratorRow& row) {
        return row.class_id == class_id && (row.vendor == 0 || row.vendor == vendor);
    });
}

}  // namespace npushmem::topology
