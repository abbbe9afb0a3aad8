#pragma once
// A sweep as one HTML page: the points, the machine, the agreement of counts and formulas, figures
// and tables.

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
