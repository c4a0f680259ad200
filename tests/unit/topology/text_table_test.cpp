#include "topology/text_table.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

TEST(RenderTable, AlignsColumnsAndTrimsLines) {
    EXPECT_EQ(render_table({{"PE", "NIC", "why"}, {"10", "mlx5_0:1", ""}, {"2"}}, 2),
              "  PE  NIC       why\n"
              "  10  mlx5_0:1\n"
              "  2\n");
    EXPECT_EQ(render_table({}, 2), "");
}

}  // namespace
}  // namespace npushmem::topology
