#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/sparse_peers.hpp"

extern "C" {  // GraphBLAS.h does not declare it
#include <GraphBLAS.h>
}

namespace redblue {
namespace {

void check(GrB_Info info, const char* what) {
  if (info != GrB_SUCCESS) {
    throw std::runtime_error(std::string("GraphBLAS: ") + what + ": " + std::to_string(info));
  }
}

// A GraphBLAS matrix, stored by rows.
class Matrix {
 public:
  Matrix() = default;
  Matrix(Index rows, Index cols) {
    check(GrB_Matrix_new(&matrix_, GrB_FP32, static_cast<GrB_Index>(rows),
                         static_cast<GrB_Index>(cols)),
          "new");
  }
  Matrix(const BlockPattern& of, const float* values) {
    const std::vector<GrB_Index> offsets(of.offsets.begin(), of.offsets.end());
    const std::vector<GrB_Index> columns(of.columns.begin(), of.columns.end());
    check(GrB_Matrix_import_FP32(&matrix_, GrB_FP32, static_cast<GrB_Index>(of.rows),
                                 static_cast<GrB_Index>(of.cols), offsets.data(), columns.data(),
                                 values, offsets.size(), columns.size(), columns.size(),
                                 GrB_CSR_FORMAT),
          "import");
  }
  static Matrix full(Index rows, Index cols, const float* words) {
    Matrix made(rows, cols);
    const std::size_t bytes = static_cast<std::size_t>(rows * cols) * sizeof(float);
    void* copy = std::malloc(bytes);  // GraphBLAS takes ownership of it
    std::memcpy(copy, words, bytes);
    check(GxB_Matrix_pack_FullR(made.matrix_, &copy, bytes, false, nullptr), "pack");
    return made;
  }
  static Matrix zero(Index rows, Index cols) {
    Matrix made(rows, cols);
    check(GrB_Matrix_assign_FP32(made.matrix_, nullptr, nullptr, 0, GrB_ALL,
                                 static_cast<GrB_Index>(rows), GrB_ALL,
                                 static_cast<GrB_Index>(cols), nullptr),
          "assign");
    return made;
  }
  static Matrix diagonal(GrB_Vector of) {
    Matrix made;
    check(GrB_Matrix_diag(&made.matrix_, of, 0), "diag");
    return made;
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  Matrix(Matrix&& other) noexcept : matrix_(std::exchange(other.matrix_, nullptr)) {}
  Matrix& operator=(Matrix&& other) noexcept {
    std::swap(matrix_, other.matrix_);
    return *this;
  }
  ~Matrix() { GrB_Matrix_free(&matrix_); }

  [[nodiscard]] GrB_Matrix get() const { return matrix_; }
  [[nodiscard]] Index rows() const {
    GrB_Index rows = 0;
    GrB_Matrix_nrows(&rows, matrix_);
    return static_cast<Index>(rows);
  }
  [[nodiscard]] Index cols() const {
    GrB_Index cols = 0;
    GrB_Matrix_ncols(&cols, matrix_);
    return static_cast<Index>(cols);
  }
  // Returns all words and empties the matrix. Requires: every entry is stored.
  [[nodiscard]] std::vector<float> take() {
    const auto size = static_cast<std::size_t>(rows() * cols());
    void* words = nullptr;
    GrB_Index bytes = 0;
    bool same = false;
    check(GxB_Matrix_unpack_FullR(matrix_, &words, &bytes, &same, nullptr), "unpack");
    const auto* const first = static_cast<const float*>(words);
    std::vector<float> all =
        same ? std::vector<float>(size, *first) : std::vector<float>(first, first + size);
    std::free(words);
    return all;
  }

 private:
  GrB_Matrix matrix_ = nullptr;
};

// One number for each row.
class Vector {
 public:
  Vector(GrB_Monoid sum, const Matrix& of) {
    check(GrB_Vector_new(&vector_, GrB_FP32, static_cast<GrB_Index>(of.rows())), "new");
    check(GrB_Matrix_reduce_Monoid(vector_, nullptr, nullptr, sum, of.get(), nullptr), "reduce");
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() { GrB_Vector_free(&vector_); }
  void apply(GrB_UnaryOp op) {
    check(GrB_Vector_apply(vector_, nullptr, nullptr, op, vector_, nullptr), "apply");
  }
  // Returns `of` with each row's number combined with all entries of the row.
  [[nodiscard]] Matrix over(const Matrix& of, GrB_Semiring semiring) const {
    const Matrix by = Matrix::diagonal(vector_);
    Matrix found(of.rows(), of.cols());
    check(GrB_mxm(found.get(), nullptr, nullptr, semiring, by.get(), of.get(), nullptr), "mxm");
    return found;
  }

 private:
  GrB_Vector vector_ = nullptr;
};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix made(a.rows(), b.cols());
  check(GrB_mxm(made.get(), nullptr, nullptr, GrB_PLUS_TIMES_SEMIRING_FP32, a.get(), b.get(),
                nullptr),
        "mxm");
  return made;
}
// Returns A B^T: all entries, or only the entries that the mask `where` has.
Matrix product_transposed(const Matrix& a, const Matrix& b, GrB_Matrix where) {
  Matrix made(a.rows(), b.rows());
  check(GrB_mxm(made.get(), where, nullptr, GrB_PLUS_TIMES_SEMIRING_FP32, a.get(), b.get(),
                where == nullptr ? GrB_DESC_T1 : GrB_DESC_ST1),
        "mxm");
  return made;
}
Matrix each(GrB_BinaryOp op, const Matrix& a, const Matrix& b) {
  Matrix made(a.rows(), a.cols());
  check(GrB_Matrix_eWiseMult_BinaryOp(made.get(), nullptr, nullptr, op, a.get(), b.get(), nullptr),
        "eWiseMult");
  return made;
}
void add_product(const Matrix& a, const Matrix& b, GrB_Descriptor as, Matrix& sum) {
  check(GrB_mxm(sum.get(), nullptr, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a.get(), b.get(),
                as),
        "mxm");
}

class GraphBlas final : public SparsePeer {
 public:
  GraphBlas() {
    static const GrB_Info started = GrB_init(GrB_BLOCKING);
    check(started, "init");
  }

  void forward(const SparseOperands& of, int threads) override {
    score(of, threads);
    Matrix sums = Matrix::zero(f_.rows(), h_.cols());
    add_product(f_, h_, nullptr, sums);
    O = sums.take();
  }

  void gradient(const SparseOperands& of, int threads) override {
    score(of, threads);
    const Matrix dO = Matrix::full(f_.rows(), h_.cols(), of.dO);
    const Matrix q = product_transposed(dO, h_, f_.get());
    const Matrix fq = each(GrB_TIMES_FP32, f_, q);
    const Vector v(GrB_PLUS_MONOID_FP32, fq);
    const Matrix p = each(GrB_MINUS_FP32, fq, v.over(f_, GrB_PLUS_TIMES_SEMIRING_FP32));
    const Matrix W = product(p, Matrix(of.where.A2(), of.A2));
    Matrix sums = Matrix::zero(h_.cols(), h_.cols());
    add_product(Matrix(of.where.A1(), of.A1), W, GrB_DESC_T0, sums);
    g = sums.take();
  }

 private:
  void score(const SparseOperands& of, int threads) {
    check(GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, threads), "threads");
    const Matrix S = product(Matrix(of.where.A1(), of.A1), Matrix(of.where.X(), of.X));
    const Matrix s = product_transposed(S, Matrix(of.where.A2(), of.A2), nullptr);
    const Vector largest(GrB_MAX_MONOID_FP32, s);
    Matrix e = each(GrB_MINUS_FP32, s, largest.over(s, GxB_PLUS_FIRST_FP32));
    check(GrB_Matrix_apply(e.get(), nullptr, nullptr, GxB_EXP_FP32, e.get(), nullptr), "apply");
    Vector sums(GrB_PLUS_MONOID_FP32, e);
    sums.apply(GrB_MINV_FP32);
    f_ = sums.over(e, GrB_PLUS_TIMES_SEMIRING_FP32);
    const Index m = of.where.A2().rows, d = of.where.A2().cols;
    h_ = Matrix::zero(m, d);
    add_product(Matrix::full(m, d, of.A3), Matrix::full(d, d, of.Y), nullptr, h_);
  }

  Matrix f_, h_;
};

}  // namespace

std::unique_ptr<SparsePeer> graphblas() {
  return std::make_unique<GraphBlas>();
}

}  // namespace redblue
