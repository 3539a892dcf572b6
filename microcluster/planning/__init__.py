"""Step time, hours, dollars and money at risk of a run. Pure.

Every figure has the limits of what was recorded on its kind of link (`recorded_runs`). What was never measured (the stand-in's model on
processors, mixed precision on a P100) has no prediction.
"""
