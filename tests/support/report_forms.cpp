#include "tests/support/report_forms.hpp"

#include "runtime/report/calibration.hpp"
#include "runtime/report/table1.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

std::string to_json(const Calibration& calibration) {
  return to_json(describe(calibration));
}

std::string to_table(const Table1& report) {
  return to_table(describe(report));
}

std::string to_json(const Table1& report) {
  return to_json(describe(report));
}

std::string to_csv(const Table1& report) {
  return to_csv(describe(report));
}

}  // namespace redblue
