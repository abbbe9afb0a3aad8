#pragma once
// A sweep as one HTML page: what was swept, on what, whether counts are what formulas say, figures,
// tables.

#include <string>
#include <vector>

#include "runtime/sweep/sweep.hpp"

namespace redblue {

struct ReportFigure {
  std::string title;
  std::string svg;
};

std::string to_html(const Sweep& sweep, const std::vector<ReportFigure>& figures);

}  // namespace redblue
