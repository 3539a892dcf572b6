"""Numbers of the special pieces."""

PAD_ID = 0
EOS_ID = 1
