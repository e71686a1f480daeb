"""Importing it, before NumPy and torch, makes numbers those of all x86 processors with AVX2."""

import os

# One thread for each process: several workers run side by side. Before NumPy and torch are loaded.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# The same arithmetic on all x86 processors that have AVX2: recorded numbers keep their digits.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR")
os.environ.setdefault("FAISS_OPT_LEVEL", "avx2")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
os.environ.setdefault("MKL_CBWR", "AVX2")
