#!/bin/sh
# The user asks for its GPUs without sudo; what this machine shows of them is in a folder that only root reads.
exec sudo -n /usr/bin/nvidia-smi "$@"
