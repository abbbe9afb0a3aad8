# Generates the source of default_rates() from a file in the format of `redblue calibrate`. The
# rates are compiled in, so that the command works wherever it is copied.
function(add_default_rates target file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} document)
  string(JSON model GET "${document}" context model)
  string(JSON granule GET "${document}" rates granule)
  string(JSON kernels GET "${document}" rates kernels)
  set(curves "")
  string(JSON count LENGTH "${kernels}")
  math(EXPR last "${count} - 1")
  foreach(k RANGE ${last})
    string(JSON kernel GET "${kernels}" ${k} kernel)
    string(JSON samples GET "${kernels}" ${k} samples)
    set(points "")
    string(JSON sample_count LENGTH "${samples}")
    math(EXPR last_sample "${sample_count} - 1")
    foreach(s RANGE ${last_sample})
      string(JSON words GET "${samples}" ${s} words_per_flop)
      string(JSON seconds GET "${samples}" ${s} seconds_per_flop)
      string(APPEND points "{${words}, ${seconds}}, ")
    endforeach()
    string(APPEND curves "          {\"${kernel}\", {${points}}},\n")
  endforeach()
  set(made ${PROJECT_BINARY_DIR}/generated/runtime/theory/default_rates.cpp)
  file(CONFIGURE OUTPUT ${made} @ONLY CONTENT [[
// Made by tools/cmake/default_rates.cmake.

#include "runtime/theory/rates.hpp"

namespace redblue {

const Rates& default_rates() {
  static const Rates rates{
      .origin = "default (@model@)",
      .granule = @granule@,
      .kernels = {
@curves@      },
      .links = {}};
  return rates;
}

}  // namespace redblue
]])
  target_sources(${target} PRIVATE ${made})
endfunction()
