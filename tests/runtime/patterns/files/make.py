#!/usr/bin/env python3
"""Writes the files in this folder: python3 make.py, with NumPy 1.24.2 and SciPy 1.10.1 (Debian 12)."""
import numpy as np
import scipy.io
import scipy.sparse as sp

# 6 x 8: an empty row, an empty column, an explicit 0 at (5, 0).
rows = np.array([0, 0, 0, 1, 3, 3, 4, 5, 5])
cols = np.array([1, 2, 7, 0, 3, 4, 4, 0, 6])
values = np.array([1, 2, 3, 4, 5, np.nan, 7, 0, 9], dtype=np.float32)
csr = sp.csr_matrix((values, (rows, cols)), shape=(6, 8))
sp.save_npz("csr.npz", csr)
sp.save_npz("csr_stored.npz", csr, compressed=False)
sp.save_npz("csc.npz", csr.tocsc())
order = np.array([4, 0, 8, 2, 1, 7, 3, 6, 5])
sp.save_npz("coo.npz", sp.coo_matrix((values[order], (rows[order], cols[order])), shape=(6, 8)))
scipy.io.mmwrite("general.mtx", csr)
scipy.io.mmwrite("pattern.mtx", csr, field="pattern")

# 6 x 8 in blocks of 2 x 4: (0, 1), (2, 0), (2, 1).
blocks = np.zeros((3, 2, 4))
bsr = sp.bsr_matrix((blocks, [1, 0, 1], [0, 1, 1, 3]), shape=(6, 8))
sp.save_npz("bsr.npz", bsr)
sp.save_npz("bsr_as_csr.npz", sp.csr_matrix((np.ones(24), bsr.tocsr().indices, bsr.tocsr().indptr)))
np.save("layout.npy", np.array([[0, 1], [0, 0], [1, 1]], dtype=bool))

# 5 x 5: the diagonal, and (3, 1) with (1, 3).
symmetric = sp.coo_matrix(([1, 2, 3, 4, 5, 6, 6], ([0, 1, 2, 3, 4, 3, 1], [0, 1, 2, 3, 4, 1, 3])))
scipy.io.mmwrite("symmetric.mtx", symmetric, field="integer", symmetry="symmetric")

sp.save_npz("dia.npz", sp.identity(4, format="dia"))
np.save("offsets.npy", np.array([0, 2, 2, 6], dtype=np.int32))
np.save("key_offsets.npy", np.array([0, 3, 8, 8], dtype=">u8"))
