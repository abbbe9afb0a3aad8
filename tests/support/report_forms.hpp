#pragma once
// Renders reports as text, for tests with a Json type other than redblue's.

#include <string>

namespace redblue {

struct Calibration;
struct Table1;

std::string to_json(const Calibration& calibration);
std::string to_table(const Table1& report);
std::string to_json(const Table1& report);
std::string to_csv(const Table1& report);

}  // namespace redblue
