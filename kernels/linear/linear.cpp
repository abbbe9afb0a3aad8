#include "kernels/linear/linear.hpp"

#include <vector>

#include "kernels/attention.hpp"

namespace redblue {

Kernel linear_kernel(LinearResult of) {
  Kernel kernel;
  kernel.pass = of == LinearResult::output ? Pass::linear : Pass::linear_gradient;
  kernel.operands = of == LinearResult::output ? std::vector<Signature>{kA1, kA2, kA3, kX, kY}
                                               : std::vector<Signature>{kA1, kA2, kA3, kY, kdO};
  kernel.returns = {of == LinearResult::output ? kO : kg};
  return kernel;
}

}  // namespace redblue
