"""Run OpenSeq2Seq's own, unchanged ``run.py`` on TensorFlow 2."""

from old_names.program import become

if __name__ == "__main__":
    become("OpenSeq2Seq", "OpenSeq2Seq/run.py")
