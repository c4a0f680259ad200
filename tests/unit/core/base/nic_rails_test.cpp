#include "core/base/nic_rails.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<PortName> ports{{"mlx5_0", 1}, {"mlx5_0", 2}, {"mlx5_1", 1}};

Result<std::vector<std::optional<unsigned>>> given_by(const std::string& text) {
    const auto entries = parse_nic_rails(text);
    if (!entries.ok()) return entries.status();
    return configured_rails(entries.value(), ports);
}

TEST(NicRails, GivesPortsTheirRails) {
    EXPECT_THAT(given_by("mlx5_0:2=7, mlx5_1=255").value(), ElementsAre(std::nullopt, 7U, 255U));
    EXPECT_THAT(given_by("mlx5_0=3").value(), ElementsAre(3U, 3U, std::nullopt));
    EXPECT_THAT(given_by("").value(), ElementsAre(std::nullopt, std::nullopt, std::nullopt));
    EXPECT_THAT(parse_nic_rails("  ").value(), IsEmpty());
}

struct Mistake {
    const char* text;
    const char* entry;
    const char* message;
};

class NicRailsMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(NicRailsMistakes, NameTheEntry) {
    const Status refused = given_by(GetParam().text).status();
    EXPECT_EQ(refused.code(), Code::config);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(std::string("NPUSHMEM_NIC_RAILS entry ") + GetParam().entry),
                                         HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, NicRailsMistakes,
    ::testing::Values(Mistake{"mlx5_0:1=0,mlx5_1", "2 \"mlx5_1\"", "write name=rail or name:port=rail"},
                      Mistake{"mlx5_0=0,,mlx5_1=1", "2 \"\"", "write name=rail"},
                      Mistake{"=3", "1 \"=3\"", "write name=rail"},
                      Mistake{"mlx5_0=1=2", "1 \"mlx5_0=1=2\"", "write name=rail"},
                      Mistake{"mlx5_0:1:2=3", "1 \"mlx5_0:1:2=3\"", "write name=rail"},
                      Mistake{"mlx5_0:one=3", "1 \"mlx5_0:one=3\"", "the port:"},
                      Mistake{"mlx5_0:0=3", "1 \"mlx5_0:0=3\"", "the port:"},
                      Mistake{"mlx5_0=", "1 \"mlx5_0=\"", "the rail:"},
                      Mistake{"mlx5_0=-1", "1 \"mlx5_0=-1\"", "between 0 and 255"},
                      Mistake{"mlx5_0=256", "1 \"mlx5_0=256\"", "between 0 and 255"},
                      Mistake{"mlx5_0=1,mlx_1=2", "2 \"mlx_1=2\"", "did you mean \"mlx5_1\"?"},
                      Mistake{"eth0=1", "1 \"eth0=1\"", "this host has mlx5_0:1, mlx5_0:2, mlx5_1:1"},
                      Mistake{"mlx5_1:2=1", "1 \"mlx5_1:2=1\"", "mlx5_1 has no port 2; it has port 1"},
                      Mistake{"mlx5_0:2=1,mlx5_0=2", "2 \"mlx5_0=2\"", "an earlier entry names mlx5_0:2"}));

}  // namespace
}  // namespace npushmem
