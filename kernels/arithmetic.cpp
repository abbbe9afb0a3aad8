#include "kernels/arithmetic.hpp"

#include <algorithm>
#include <cmath>

#include "memsim/machine.hpp"

namespace redblue {
namespace {

bool same_shape(const Tile& a, const Tile& b) {
  return a.rows() == b.rows() && a.cols() == b.cols();
}

bool is_column_of(const Tile& column, const Tile& a) {
  return column.cols() == 1 && column.rows() == a.rows();
}

// A product of rows x depth and depth x cols.
void report_product(Tile& c, Index depth) {
  c.machine().computed({.flops = 2 * c.words() * depth});
}

void report(Tile& changed, Index operations) {
  changed.machine().computed({.elementwise = operations});
}

}  // namespace

void multiply_add(const Tile& a, const Tile& b, Tile& c) {
  require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
          "c += a b: the tiles conform");
  for (Index i = 0; i < c.rows(); ++i) {
    const float* ai = a.row(i);
    float* ci = c.row(i);
    for (Index k = 0; k < a.cols(); ++k) {
      const float* bk = b.row(k);
      for (Index j = 0; j < c.cols(); ++j) {
        ci[j] += ai[k] * bk[j];
      }
    }
  }
  report_product(c, a.cols());
}

void multiply_add(const Tile& a, Transposed<Tile> bt, Tile& c) {
  const Tile& b = bt.of;
  require(a.cols() == b.cols() && c.rows() == a.rows() && c.cols() == b.rows(),
          "c += a b^T: the tiles conform");
  for (Index i = 0; i < c.rows(); ++i) {
    const float* ai = a.row(i);
    float* ci = c.row(i);
    for (Index j = 0; j < c.cols(); ++j) {
      const float* bj = b.row(j);
      float sum = ci[j];
      for (Index k = 0; k < a.cols(); ++k) {
        sum += ai[k] * bj[k];
      }
      ci[j] = sum;
    }
  }
  report_product(c, a.cols());
}

void multiply_add(Transposed<Tile> at, const Tile& b, Tile& c) {
  const Tile& a = at.of;
  require(a.rows() == b.rows() && c.rows() == a.cols() && c.cols() == b.cols(),
          "c += a^T b: the tiles conform");
  for (Index k = 0; k < a.rows(); ++k) {
    const float* ak = a.row(k);
    const float* bk = b.row(k);
    for (Index i = 0; i < c.rows(); ++i) {
      float* ci = c.row(i);
      for (Index j = 0; j < c.cols(); ++j) {
        ci[j] += ak[i] * bk[j];
      }
    }
  }
  report_product(c, a.rows());
}

void raise_maximum(const Tile& s, Tile& maximum) {
  require(is_column_of(maximum, s), "one maximum a row");
  for (Index i = 0; i < s.rows(); ++i) {
    float& top = maximum(i, 0);
    const float* si = s.row(i);
    for (Index j = 0; j < s.cols(); ++j) {
      top = std::max(top, si[j]);
    }
  }
  report(maximum, s.words());
}

void raise_maximum(const Tile& s, Tile& maximum, Tile& rescale) {
  require(is_column_of(maximum, s) && is_column_of(rescale, s), "one maximum and factor a row");
  for (Index i = 0; i < s.rows(); ++i) {
    rescale(i, 0) = maximum(i, 0);
  }
  raise_maximum(s, maximum);
  for (Index i = 0; i < s.rows(); ++i) {
    rescale(i, 0) = std::exp(rescale(i, 0) - maximum(i, 0));
  }
  report(rescale, 2 * rescale.words());
}

void exponentiate(Tile& s, const Tile& row) {
  exponentiate(s, row, s);
}

void exponentiate(const Tile& s, const Tile& row, Tile& f) {
  require(is_column_of(row, s) && same_shape(f, s), "f = exp(s - row): the tiles conform");
  for (Index i = 0; i < s.rows(); ++i) {
    const float shift = row(i, 0);
    const float* si = s.row(i);
    float* fi = f.row(i);
    for (Index j = 0; j < s.cols(); ++j) {
      fi[j] = std::exp(si[j] - shift);
    }
  }
  report(f, 2 * f.words());
}

void add_row_sums(const Tile& a, Tile& sum) {
  require(is_column_of(sum, a), "one sum a row");
  for (Index i = 0; i < a.rows(); ++i) {
    const float* ai = a.row(i);
    for (Index j = 0; j < a.cols(); ++j) {
      sum(i, 0) += ai[j];
    }
  }
  report(sum, a.words());
}

void add_row_dots(const Tile& a, const Tile& b, Tile& sum) {
  require(same_shape(a, b) && is_column_of(sum, a), "sum += rowsum(a * b): the tiles conform");
  for (Index i = 0; i < a.rows(); ++i) {
    const float* ai = a.row(i);
    const float* bi = b.row(i);
    for (Index j = 0; j < a.cols(); ++j) {
      sum(i, 0) += ai[j] * bi[j];
    }
  }
  report(sum, 2 * a.words());
}

void scale_rows(Tile& a, const Tile& factor) {
  require(is_column_of(factor, a), "one factor a row");
  for (Index i = 0; i < a.rows(); ++i) {
    const float by = factor(i, 0);
    float* ai = a.row(i);
    for (Index j = 0; j < a.cols(); ++j) {
      ai[j] *= by;
    }
  }
  report(a, a.words());
}

void divide_rows(const Tile& a, const Tile& divisor, Tile& f) {
  require(is_column_of(divisor, a) && same_shape(f, a), "f = a / divisor: the tiles conform");
  for (Index i = 0; i < a.rows(); ++i) {
    const float by = divisor(i, 0);
    const float* ai = a.row(i);
    float* fi = f.row(i);
    for (Index j = 0; j < a.cols(); ++j) {
      fi[j] = ai[j] / by;
    }
  }
  report(f, f.words());
}

void add_logarithm(Tile& maximum, const Tile& sum) {
  require(same_shape(maximum, sum) && sum.cols() == 1, "one sum a maximum");
  for (Index i = 0; i < sum.rows(); ++i) {
    maximum(i, 0) += std::log(sum(i, 0));
  }
  report(maximum, 2 * maximum.words());
}

void softmax_gradient(const Tile& f, const Tile& q, const Tile& v, Tile& p) {
  require(same_shape(f, q) && same_shape(p, q) && is_column_of(v, q),
          "p = f (q - v): the tiles conform");
  for (Index i = 0; i < p.rows(); ++i) {
    const float vi = v(i, 0);
    const float* fi = f.row(i);
    const float* qi = q.row(i);
    float* pi = p.row(i);
    for (Index j = 0; j < p.cols(); ++j) {
      pi[j] = fi[j] * (qi[j] - vi);
    }
  }
  report(p, 2 * p.words());
}

}  // namespace redblue
