"""The virtual crashes of the benchmark, where their cost is known."""

from tests.bench import crash_loss


def test_what_is_not_copied_yet_is_lost_with_the_launcher_alone():
    setting = crash_loss.Setting(step_s=1.0, write_s=0.0, copy_s=30.0, interval=100, per_hour=1.0)
    of_process, of_launcher = crash_loss.losses(setting)
    assert max(of_launcher) > 125 > max(of_process)
