"""Real data for the notebooks, from files that are already on this machine. Nothing is downloaded.

Modules:
    digits     handwritten digits
    gpu_trace  a profile from a GPU
    idx        files in the format of MNIST
    play       the beginning of a play by Shakespeare
"""
