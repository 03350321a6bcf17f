"""The node agent on a machine with a real NVIDIA GPU: what it reads, beside nvidia-smi, over a load."""
