#pragma once
// Writes a sweep as one HTML page: points, machine, agreement of counts and formulas, figures and
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
