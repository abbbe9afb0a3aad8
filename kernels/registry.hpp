#pragma once
// What makes each kernel: a line here, and one in the list of registry.cpp. backward/rows-q is in
// kernels/backward/rows_q.cpp. A variant without a file is in that of the name it extends: rows-w
// in rows.cpp, stationary-a in stationary.cpp.

#include "kernels/kernel.hpp"

namespace redblue {

Kernel matmul_blocked();
Kernel matmul_stationary_a();
Kernel matmul_stationary_b();
Kernel matmul_stationary_c();
Kernel forward_naive();
Kernel forward_small();
Kernel forward_flash();
Kernel forward_rows();
Kernel forward_rows_resident();
Kernel forward_columns();
Kernel forward_tiles();
Kernel backward_naive();
Kernel backward_small();
Kernel backward_large();
Kernel backward_flash();
Kernel backward_rows();
Kernel backward_rows_w();
Kernel backward_rows_onepass();
Kernel backward_score_rows();
Kernel backward_rows_xg();
Kernel backward_rows_resident();
Kernel backward_columns();
Kernel backward_rows_q();
Kernel backward_rows_q_onepass();
Kernel backward_tiles();
Kernel backward_tiles_sqp();
Kernel backward_tiles_sq();

}  // namespace redblue
