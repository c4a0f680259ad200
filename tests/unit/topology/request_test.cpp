#include "topology/request.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

using ::testing::HasSubstr;

TEST(RequestFrom, TakesPolicyAndVariables) {
    Settings settings;
    settings.nic_policy = "nearest";
    settings.enable_nic_pe_mapping = true;
    settings.hca_list = "a";
    settings.hca_pe_mapping = "b:1:1";
    settings.nic_rails = "a=3";
    const auto request = request_from(settings, {DevicePlace{}}, {Rail{}, Rail{}});
    ASSERT_TRUE(request.ok()) << request.status().message();
    EXPECT_EQ(request.value().policy, Policy::nearest);
    EXPECT_TRUE(request.value().enable_nic_pe_mapping);
    EXPECT_EQ(request.value().hca_list, "a");
    EXPECT_EQ(request.value().hca_pe_mapping, "b:1:1");
    EXPECT_EQ(request.value().nic_rails, "a=3");
    EXPECT_EQ(request.value().pes.size(), 1u);
    EXPECT_EQ(request.value().rails.size(), 2u);
}

TEST(CheckNicVariables, NamesWhatCannotBeRead) {
    Settings settings;
    EXPECT_TRUE(check_nic_variables(settings).ok());
    settings.nic_rails = "mlx5_0=0,mlx5_1=x";
    EXPECT_THAT(check_nic_variables(settings).message(), HasSubstr("NPUSHMEM_NIC_RAILS entry 2 \"mlx5_1=x\""));
}

TEST(RequestFrom, NamesTheVariableOfAnUnknownPolicy) {
    Settings settings;
    settings.nic_policy = "best";
    const auto request = request_from(settings, {}, {});
    ASSERT_FALSE(request.ok());
    EXPECT_THAT(request.status().message(), HasSubstr("NPUSHMEM_NIC_POLICY"));
}

}  // namespace
}  // namespace npushmem::topology
