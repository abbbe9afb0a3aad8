#pragma once
// Fits the power law c n^a d^b M^e to counted words, by ordinary least squares in logarithms.
// Functions of values: safe to use from any thread.

#include <vector>

#include "memsim/words.hpp"

namespace redblue {

struct Exponents {
  double n = 0;
  double d = 0;
  double M = 0;
};

struct Sample {
  Index n = 1;
  Index d = 1;
  Index M = 1;
  double words = 1;
};

struct PowerLaw {
  double constant = 0;
  Exponents exponents;
  double residual = 0;  // the largest deviation of a sample, in octaves
};

// Throws: ShapeMismatch for sizes or words that are not positive, and for samples that do not
// determine the exponents. In such samples n, d or M never changes, or it follows from the other
// two by a power law.
PowerLaw fit_power_law(const std::vector<Sample>& samples);

}  // namespace redblue
