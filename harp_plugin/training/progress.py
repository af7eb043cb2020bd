"""What a person sees of a running training: a bar, and a short line for each log entry."""

from __future__ import annotations

from transformers.trainer_callback import ProgressCallback


class StepBar(ProgressCallback):
    """transformers' bar, with each loss and each task's pair accuracy on one line."""

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Write the line above the bar; entries without a loss are left out."""
        if state.is_world_process_zero and self.training_bar is not None and "loss" in logs:
            self.training_bar.write(as_line(state.global_step, logs))


def as_line(step: int, logs: dict[str, float]) -> str:
    """One log entry: losses, then the share of pairs in the right order by task."""
    losses = [f"{name} {logs[key]:.3g}" for key, name in _of(logs, prefix="loss/")]
    right = [f"{name} {logs[key]:.0%}" for key, name in _of(logs, suffix="/accuracy")]
    line = f"{step:>6} loss {logs['loss']:.3g} {' '.join(losses)}"
    return f"{line} | {' '.join(right)}" if right else line


def _of(logs: dict[str, float], prefix: str = "", suffix: str = "") -> list[tuple[str, str]]:
    keys = [key for key in logs if key.startswith(prefix) and key.endswith(suffix)]
    return [(key, key.removeprefix(prefix).removesuffix(suffix)) for key in keys]
