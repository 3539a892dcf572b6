"""Run the unchanged ``lm_ptb_distributed.py`` of Texar's examples on TensorFlow 2."""

from old_names.program import become

if __name__ == "__main__":
    become("Texar", "Texar/examples/distributed_gpu/lm_ptb_distributed.py", "Texar")
